package module

import "github.com/helve-ai/helve/schema"

// A Callable is another app that this one may call.
type Callable struct {
	Name, Description string
	Input             *schema.Schema // of what it is given; nil: any text
	Output            *schema.Schema // of what it gives back; nil: a text
}
