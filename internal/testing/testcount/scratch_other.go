//go:build !linux

package main

func scratch(string) string { return "" }
