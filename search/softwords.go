package search

import (
	"strings"
	"sync"
)

// softEnglish are words that requests and tools are full of and that tell
// little about which tool is meant. In a small catalogue few tools may use one
// of them, which makes it look rare.
const softEnglish = `information info detail details detailed specific specifically particular current currently various
different best better good great nice perfect suitable appropriate available new latest recent recently right quick quickly
easy easily easiest simple simply important interesting interested effective effectively efficient related relevant
regarding concerning including include includes included based following example examples such many multiple several
certain whole entire full complete completely comprehensive overall general generally basic common popular top high low
big small large little long short kind kinds type types way ways part parts lot lots bit case cases thing stuff issue issues question questions
answer answers idea ideas advice tip tips guide guidance suggestion suggestions recommendation recommendations
provide provides providing provided offer offers offering see seeing
like think feel come coming came make makes making made take takes taking took keep keeping put bring start starting
started begin work works working run running help assist assistance support require required ensure able allow
receive received share sharing enjoy hear heard happen happening mean means become consider considering
someone everyone anyone day days today tomorrow tonight week weeks month months year years
time times now moment soon later early last past next first second third final final currently already still yet
really actually currently quite pretty maybe perhaps especially instead along away back around near nearby
potential possible possibly additional extra further own personal personalized unique special real free sure
world global use used uses ability`

var softWords = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(softEnglish) {
		m[w] = true
	}
	return m
})
