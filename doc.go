// Package helve is the root of the module: it holds the checks that concern every room of the house.
//
// Programs that embed Helve begin with package tool, whose New makes a tool of
// a function, and pipeline with guard, which carry calls to it. Package search
// finds tools, inject chooses which a model sees, mcpbridge serves them to MCP
// clients, agent is the loop with a model, and parse reads calls from a model's
// text. Package app opens what an app file declares, with all of these. Each
// has an example.
package helve
