package http

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNoise(t *testing.T) {
	for in, want := range map[string]string{
		`<a href="https://x.org/a?utm_source=n&amp;id=7&amp;fbclid=Iw#top">`: `<a href="https://x.org/a?id=7#top">`,
		`<a href='/b?gclid=1'>`:                                                        `<a href='/b'>`,
		`{"u":"https:\/\/x.org\/?a=1&utm_medium=m"}`:                                   `{"u":"https:\/\/x.org\/?a=1"}`,
		`{"u":"https://x.org/?utm_id=1\u0026a=1"}`:                                     `{"u":"https://x.org/?a=1"}`,
		`<a href="/shop;jsessionid=0A1B?item=3">`:                                      `<a href="/shop?item=3">`,
		`<a href="/i?PHPSESSID=abc&item=3">`:                                           `<a href="/i?item=3">`,
		`<img src="data:image/png;base64,` + strings.Repeat("iVBO", 100) + `">`:        `<img src="data:image/png;base64,[400 characters left out]">`,
		`<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">`:                       `<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">`,
		`<p>utm_source=a&b is a parameter; data: none</p>`:                             `<p>utm_source=a&b is a parameter; data: none</p>`,
		`<a href="https://x.org/?session=1&customutm_x=2&q=what?utm_sourced%20">x</a>`: `<a href="https://x.org/?session=1&customutm_x=2&q=what?utm_sourced%20">x</a>`,
	} {
		got := withoutNoise(in)
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
		if again := withoutNoise(got); again != got {
			t.Errorf("%s: a second time makes %s", got, again)
		}
	}
}

func TestPageSummary(t *testing.T) {
	var b strings.Builder
	b.WriteString("200 OK\nContent-Type: text/html; charset=utf-8\n\n<html><head><title>All about axes</title><meta name=description content='Axes, old and new'><script>noise()</script></head><body>")
	for i := range 300 {
		fmt.Fprintf(&b, "<h2>Chapter %d</h2><p>Some <a href=/x>text</a> about it.</p>", i)
	}
	for _, most := range []int{400, 2000, 9700} {
		got := summarize(b.String(), most)
		if utf8.RuneCountInString(got) > most {
			t.Errorf("%d characters, want at most %d", utf8.RuneCountInString(got), most)
		}
		for _, want := range []string{"200 OK", "Title: All about axes", "Description: Axes, old and new", "300 links", "    Chapter 0\n", " more\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("at most %d: no %q in\n%s", most, want, got)
			}
		}
		if strings.Contains(got, "noise()") {
			t.Errorf("scripts are shown: %s", got)
		}
	}
	deep := "200 OK\nContent-Type: text/html\n\n" + strings.Repeat("<div>", 200_000)
	if got := summarize(deep, 1000); utf8.RuneCountInString(got) > 1000 {
		t.Errorf("a deep page has a summary of %d characters", utf8.RuneCountInString(got))
	}
}

func TestJSONSummary(t *testing.T) {
	type item struct {
		ID   int
		Name string
		Tags []string
	}
	data := map[string]any{"total": 12345678901234567, "next": "https://x.org/2", "items": []item{}}
	var items []item
	for i := range 500 {
		items = append(items, item{i, fmt.Sprintf("the name of item %d", i), []string{"a", "b"}})
	}
	data["items"] = items
	body, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, most := range []int{300, 2000, 9700} {
		got := summarize("200 OK\nContent-Type: application/json\n\n"+string(body), most)
		if utf8.RuneCountInString(got) > most {
			t.Errorf("%d characters, want at most %d", utf8.RuneCountInString(got), most)
		}
		for _, want := range []string{"object with 3 keys", "items: array of 500", `- {"ID":0`, "total: 12345678901234567", "next: "} {
			if most > 300 && !strings.Contains(got, want) {
				t.Errorf("at most %d: no %q in\n%s", most, want, got)
			}
		}
	}
	for _, bad := range []string{"", "{", `{"a":1`, "[1,", "plain text"} {
		if got := summarize("200 OK\nContent-Type: application/json\n\n"+bad, 1000); got != "" && bad != "" {
			t.Errorf("%q has the summary %q", bad, got)
		}
	}
	if got := summarize("200 OK\nContent-Type: text/plain\n\n"+strings.Repeat("words ", 5000), 1000); got != "" {
		t.Errorf("plain text has the summary %q", got)
	}
}
