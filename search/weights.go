package search

// All figures by which the ranking was tuned stand here. They were chosen on
// the development halves of ten public tool catalogues with queries, by the
// macro average of nDCG@10 and recall@5, one figure at a time and in coarse
// steps: halving or doubling one costs less than .01 of nDCG@10. Those of
// titles, help, tags, aliases, side effects and examples, of which these
// catalogues have none, and of naming are set by judgement.

// A field is a part of a tool's definition that search weighs by itself.
type field uint8

const (
	fieldName field = iota
	fieldTitle
	fieldModule
	fieldCategory
	fieldDescription
	fieldHelp
	fieldTags
	fieldAliases
	fieldParams
	fieldParamDocs
	fieldSideEffects
	fieldExamples
	fieldCount
)

// fields holds, for each field, what an occurrence of a word in it counts, the
// length in words at which it counts just that, and how much it counts less in
// longer fields (0: nothing, 1: in proportion).
//
// The usual lengths are constants and not averages of the catalogue, so that
// what is indexed of one tool never depends on the others.
var fields = [fieldCount]struct {
	label  string
	weight float32
	usual  float32
	decay  float32
}{
	fieldName:        {"name", 2, 3, .5},
	fieldTitle:       {"title", 2, 3, .3},
	fieldModule:      {"module", 1, 2, .3},
	fieldCategory:    {"category", .5, 1, 0},
	fieldDescription: {"description", 1, 20, .5},
	fieldHelp:        {"help", .4, 60, .75},
	fieldTags:        {"tags", 1.5, 5, .5},
	fieldAliases:     {"aliases", 2, 6, .5},
	fieldParams:      {"parameters", .6, 6, .5},
	fieldParamDocs:   {"parameter descriptions", .3, 40, .5},
	fieldSideEffects: {"side effects", .4, 15, .75},
	fieldExamples:    {"examples", .2, 15, .75},
}

// saturation is BM25's k1: the weighted count of a word at which it has half
// of its greatest effect.
const saturation = 1.2

// What words of a query weigh.
const (
	weightStop   = .05 // a stop word of the query's language
	weightNumber = .2  // digits, a single letter: mostly arguments
	weightSingle = .3  // one character of a script without spaces
	weightClosed = .5  // two words of the query that a tool writes as one
	weightStem   = .9  // a tool's word that shares the stem only
	weightPrefix = .5  // a tool's word that goes on after the query's word ends, times the share that it has of it
	weightFuzzy  = .7  // a tool's word that differs in one letter; squared for two
	contentFloor = .25 // words that weigh less never bring a tool into the answer, they only order it
)

// minSimilarity is the least share of n-grams by which an unknown word of the
// query stands for a word of a tool.
const minSimilarity = .5

// What the channels weigh, each scaled to 1 for its best tool.
const (
	channelWords = 1
	channelGrams = .3
)

// What naming a tool adds, far above what the channels can reach together.
const (
	bonusName  = 16 // the query is the tool's name or wire form
	bonusForm  = 12 // it is the name in another writing
	bonusShort = 8  // it is the name without the module
	bonusAlias = 4  // it is an alias
	bonusInner = 1  // the query mentions the name
)

// relativeFloor is the share of the best score below which nothing is returned.
const relativeFloor = .05
