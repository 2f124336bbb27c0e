package lexicon

//go:generate go test . -run TestCompiled -update
