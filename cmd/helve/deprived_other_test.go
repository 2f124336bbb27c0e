//go:build !linux

package main

func deprivedMain() {}
