package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/store"
	"github.com/helve-ai/helve/tool"
)

// LedgerPart and UsagePart are the parts of the store that hold what was
// reviewed and spent, and what calls used. All apps of a store share them.
const (
	LedgerPart = "ledger"
	UsagePart  = "usage"
)

// costings returns what the operator says of tools' costs, by full name.
func (c *Config) costings() map[string]Costing {
	out := map[string]Costing{}
	for m, block := range c.Tools.Modules {
		for action, costing := range block.Overrides {
			out[m+"."+action] = costing
		}
	}
	for server, s := range c.Tools.MCPServers {
		for t, o := range s.Overrides {
			if o.CostClass != "" || o.Price != "" {
				out["mcp."+server+"."+t] = Costing{o.CostClass, o.Price}
			}
		}
	}
	return out
}

// priced returns tools with the operator's word on what they cost.
func (a *App) priced(tools []*tool.Tool) []*tool.Tool {
	if len(a.costs) == 0 {
		return tools
	}
	out := slices.Clone(tools)
	for i, t := range out {
		if costing, ok := a.costs[t.Name]; ok && costing.CostClass != "" {
			own := *t
			own.CostClass = tool.CostClass(costing.CostClass)
			out[i] = &own
		}
	}
	return out
}

// meter returns what authorises the app's metered calls.
func (a *App) meter() (*guard.Meter, error) {
	a.costs = a.Config.costings()
	prices := map[string]guard.Money{}
	for _, name := range slices.Sorted(maps.Keys(a.costs)) {
		if a.costs[name].Price == "" {
			continue
		}
		price, err := guard.ParseMoney(a.costs[name].Price)
		if err != nil {
			return nil, fmt.Errorf("the price of %s: %w", name, err)
		}
		prices[name] = price
	}
	b := a.Config.Tools.Capabilities.Budgets
	return &guard.Meter{App: a.Config.App.ID, Prices: prices, Store: store.Sub(a.ledgerStore(), LedgerPart), Root: a.Root,
		Redactor: a.redactor, Log: a.log,
		Budgets: guard.Budgets{PaidPerDay: b.PaidPerDay, PremiumPerDay: b.PremiumPerDay, PerTask: b.PerTask}}, nil
}

// ledgerStore returns the store that holds the ledger. An app that is only
// looked at reads it, and writes nothing.
func (a *App) ledgerStore() store.Store {
	if !a.opts.Inspect {
		return a.whole
	}
	if a.opts.Store != "" {
		return readOnly{a.whole}
	}
	s, err := OpenStore(context.Background(), "", a.State)
	if err != nil {
		return nil // which denies
	}
	a.closers = append(a.closers, s.Close)
	return readOnly{IfThere(s)}
}

// counter returns what counts the app's calls; nil if nothing is run.
func (a *App) counter() *guard.Counter {
	if a.opts.Inspect {
		return nil
	}
	u := guard.NewCounter(store.Sub(a.whole, UsagePart), a.log, nil, a.opts.Usage)
	a.closers = append(a.closers, u.Close)
	return u
}

// checkCosts checks what overrides say of costs.
func (l *loader) checkCosts(overrides *node, path string) {
	for _, f := range overrides.members() {
		price := f.value.get("price")
		if price == nil || price.kind != isString {
			continue
		}
		if _, err := guard.ParseMoney(price.text); err != nil {
			l.fail(price.at, joinPath(path, f.key)+".price", strings.TrimSpace(err.Error()), "")
		}
	}
}

// checkCosted checks that a module's overrides name actions of its.
func (l *loader) checkCosted(overrides *node, path, moduleName string, modules []string) {
	for _, f := range overrides.members() {
		l.checkAction(f.at, joinPath(path, f.key), moduleName, modules, f.key)
	}
	l.checkCosts(overrides, path)
}
