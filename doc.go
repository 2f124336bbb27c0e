// Package helve is the root of the module: it holds the checks that concern every room of the house.
package helve
