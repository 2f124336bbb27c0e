package search_test

import (
	"context"
	"fmt"

	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

func Example() {
	none := func(context.Context, struct{}) (string, error) { return "", nil }
	var reg tool.Registry
	err := reg.Add(
		tool.New(tool.Definition{Name: "orders.cancel", Description: "Cancel an order.", Effect: tool.Destroys}, none),
		tool.New(tool.Definition{Name: "orders.list", Description: "List the orders of a customer.", Effect: tool.Reads}, none),
		tool.New(tool.Definition{Name: "weather.now", Description: "Tell the weather in a city.", Effect: tool.Reads}, none),
	)
	if err != nil {
		panic(err)
	}

	ix := search.New(search.Options{})
	defer ix.Close()
	ix.Sync(reg.Set()) // again whenever the set has changed: it takes up what is new
	for _, text := range []string{"what will the weather be like", "annuler une commande"} {
		hits, err := ix.Search(context.Background(), search.Query{Text: text, Limit: 1})
		if err != nil {
			panic(err)
		}
		for _, h := range hits {
			fmt.Println(h.Tool.Name)
		}
	}
	// Output:
	// weather.now
	// orders.cancel
}
