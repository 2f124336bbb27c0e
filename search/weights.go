package search

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
)

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

// labels are what the fields are called in explanations and weights.
var labels = [fieldCount]string{"name", "title", "module", "category", "description", "help", "tags", "aliases",
	"parameters", "parameter descriptions", "side effects", "examples"}

// Weights are the figures that rank tools, by name. The zero Weights are those
// that Helve comes with.
type Weights struct {
	set bool
	v   [knobCount]float32
}

// A knob is a figure of the weights.
type knob int

const (
	perField         = 3 // knobs of a field's words: their weight, its usual length, its decay
	kSaturation knob = (perField+1)*knob(fieldCount) + iota - 1
	kPairs
	kGramWeight
	kStop
	kNumber
	kSingle
	kQuoted
	kSoft
	kPart
	kThing
	kClosed
	kStem
	kPrefix
	kFuzzy
	kSynonym
	kForeign
	kBroader
	kNear
	kPair
	kContentFloor
	kMinSimilarity
	kSimilar
	kGrams
	kClauses
	kProvider
	kIntents
	kIntentShare
	kRepeat
	kMeaning
	kMeaningLeast
	kHabits
	kDeed
	kQuestion
	kNamed
	kRuledOut
	kShunned
	kFloor
	kShareFloor
	kScoreFloor
	knobCount
)

// own returns the knob of a field: 0 is its weight, 1 its usual length, 2 its decay.
func (f field) own(i int) knob { return knob(perField*int(f) + i) }

// concept returns the knob of a concept that a field speaks of.
func (f field) concept() knob { return knob(perField*int(fieldCount) + int(f)) }

// A Knob describes one of the weights.
type Knob struct {
	Name    string  // as in {"field.name": 2}
	What    string  // what it does, in one sentence
	Default float64 // what Helve comes with
	Indexes bool    // it changes what is indexed: an index must be built anew
}

// knobs holds all figures by which tools are ranked.
var knobs = func() (k [knobCount]Knob) {
	for f := range fieldCount {
		name := strings.ReplaceAll(labels[f], " ", "_")
		d := fields[f]
		k[f.own(0)] = Knob{"field." + name, "what an occurrence of a word in the field counts", d.weight, true}
		k[f.own(1)] = Knob{"field." + name + ".usual", "the length in words at which it counts just that", d.usual, true}
		k[f.own(2)] = Knob{"field." + name + ".decay", "how much it counts less in longer fields: 0 nothing, 1 in proportion", d.decay, true}
		k[f.concept()] = Knob{"concept." + name, "what an occurrence of a concept in the field counts", d.concept, true}
	}
	for n, o := range others {
		k[n] = o
	}
	return k
}()

// fields holds for each field what an occurrence of a word in it counts, the
// length in words at which it counts just that, how much it counts less in
// longer fields (0: nothing, 1: in proportion), and what an occurrence of a
// concept counts.
//
// The usual lengths are constants and not averages of the catalogue, so that
// what is indexed of one tool never depends on the others.
var fields = [fieldCount]struct{ weight, usual, decay, concept float64 }{
	fieldName:        {2, 3, .5, 2},
	fieldTitle:       {2, 3, .3, 2},
	fieldModule:      {1, 2, .3, .5},
	fieldCategory:    {.5, 1, 0, .5},
	fieldDescription: {1, 20, .5, 1.5},
	fieldHelp:        {.4, 60, .75, .4},
	fieldTags:        {1.5, 5, .5, 1.5},
	fieldAliases:     {2, 6, .5, 2},
	fieldParams:      {.6, 6, .5, .1},
	fieldParamDocs:   {.4, 40, .5, 0},
	fieldSideEffects: {.4, 15, .75, .2},
	fieldExamples:    {.2, 15, .75, 0},
}

var others = map[knob]Knob{
	kSaturation:    {"saturation", "BM25's k1: the weighted count of a word at which it has half of its greatest effect", 1.2, true},
	kPairs:         {"index.pairs", "what two neighbouring words of a name, title or description count, against one of them", 1, true},
	kGramWeight:    {"index.grams", "what four neighbouring letters of a word count, against the word", 1, true},
	kStop:          {"word.stop", "a stop word of the query's language", .05, false},
	kNumber:        {"word.number", "digits, a single letter: mostly arguments", .2, false},
	kSingle:        {"word.single", "one character of a script without spaces", .1, false},
	kQuoted:        {"word.quoted", "a word in quotation marks: mostly an argument", .6, false},
	kSoft:          {"word.soft", "a word that tells little of what is wanted, such as details or best", .3, false},
	kPart:          {"word.part", "a part of a word that is known whole, such as GitHub", .5, false},
	kThing:         {"word.thing", "a word that stands for a thing, and for nothing that is done, against any other: many tools do the same, with other things", 1.2, false},
	kClosed:        {"word.closed", "two words of the query that a tool writes as one", .5, false},
	kStem:          {"word.stem", "a tool's word that shares the stem only", .9, false},
	kPrefix:        {"word.prefix", "a tool's word that goes on after the query's word ends, times the share that it has of it", .8, false},
	kFuzzy:         {"word.fuzzy", "a tool's word that differs in one letter; squared for two", .7, false},
	kSynonym:       {"concept.synonym", "a concept that an English word of the query stands for, instead of the word", .6, false},
	kForeign:       {"concept.foreign", "a concept that a word of another language stands for, besides the word", 1.5, false},
	kBroader:       {"concept.broader", "a concept of which one that is meant is a special case, as sport is of tennis, times what that counts", .45, false},
	kNear:          {"concept.near", "a concept that is only related to one that is meant, as restaurants are to hunger, times what that counts", .35, false},
	kPair:          {"word.pair", "two neighbours of the query that are neighbours in a tool as well, besides the words", .4, false},
	kContentFloor:  {"word.floor", "words that weigh less never bring a tool into the answer, they only order it", .25, false},
	kMinSimilarity: {"similar.least", "the least share of n-grams by which an unknown word of the query stands for a word of a tool", .5, false},
	kSimilar:       {"channel.similar", "the words that are like unknown ones of the query, against 1 for words and concepts", .3, false},
	kGrams:         {"channel.grams", "four neighbouring letters of words, against 1 for words and concepts", .25, false},
	kClauses:       {"channel.clauses", "the best of the query's sentences by itself, against 1 for all its words and concepts", .4, false},
	kIntents:       {"intent", "the best tool for each of several things that are asked for, against the best of all", .7, false},
	kIntentShare:   {"intent.share", "the least share of such a thing that its best tool explains", .25, false},
	kRepeat:        {"repeat", "what a hit loses where all that it has of the query is had by those before it, as a share of its score", .25, false},
	kProvider:      {"channel.along", "a tool that finds things of which one of the best asks for an id, against what that one scores", .75, false},
	kMeaning:       {"channel.meaning", "a tool that means just what the query does, by the model, against 1 for words and concepts; set by judgement, no model was at hand to measure it", 1, false},
	kMeaningLeast:  {"meaning.least", "the least likeness, from 0 for any two tools to 1 for the same, by which the model brings a tool into the answer; set by judgement", .25, false},
	kHabits:        {"channel.habits", "a tool that was of use after queries like this one, where an app learns from usage, against the best score; set by judgement", .25, false},
	kDeed:          {"deed", "what a tool loses that does something else with things than the query asks for, such as to create where it says delete, as a share of its score", .1, false},
	kQuestion:      {"question", "what a tool loses that changes something, where the query is a question and names nothing to be done, as a share of its score", .2, false},
	kNamed:         {"named", "what a tool loses if the query had nothing of its name, as a share of its score; less by the share that it has", .3, false},
	kRuledOut:      {"word.without", "a word that the query rules out, as e-mail in \"without e-mail\"; set by judgement", .1, false},
	kShunned:       {"without", "what a tool loses that is named after such a word, as a share of its score; set by judgement", .6, false},
	kShareFloor:    {"floor.share", "nothing is returned if the best tool explains no more than this share of the query", .05, false},
	kScoreFloor:    {"floor.score", "and if what it explains weighs no more than this: a word in every fifth tool weighs 1.6, one in every hundredth 4.6, half of it counting where it stands in a description once", 1.5, false},
	kFloor:         {"floor", "the share of the best score below which nothing is returned", .05, false},
}

// defaults are the weights that Helve comes with.
var defaults = func() *Weights {
	w := &Weights{set: true}
	for i, k := range knobs {
		w.v[i] = float32(k.Default)
	}
	return w
}()

// What naming a tool adds, far above what the channels can reach together.
const (
	bonusName  = 16 // the query is the tool's name or wire form
	bonusForm  = 12 // it is the name in another writing
	bonusShort = 8  // it is the name without the module
	bonusAlias = 4  // it is an alias
	bonusInner = 1  // the query mentions the name
)

// Knobs describes all weights, in the order in which they are tuned.
func Knobs() []Knob { return slices.Clone(knobs[:]) }

// filled returns w, or the weights that Helve comes with where w is zero.
func (w *Weights) filled() *Weights {
	if w == nil || !w.set {
		return defaults
	}
	return w
}

func knobNamed(name string) (knob, error) {
	for i, k := range knobs {
		if k.Name == name {
			return knob(i), nil
		}
	}
	return 0, fmt.Errorf("no weight is named %q; helve bench tune --list shows them all", name)
}

// Get returns the weight of that name, zero if there is none.
func (w *Weights) Get(name string) float64 {
	k, err := knobNamed(name)
	if err != nil {
		return 0
	}
	return float64(w.filled().v[k])
}

// Set changes the weight of that name. Weights are finite and not negative.
func (w *Weights) Set(name string, value float64) error {
	k, err := knobNamed(name)
	if err != nil {
		return err
	}
	if math.IsNaN(value) || value < 0 || value > 1e6 {
		return fmt.Errorf("weight %s: %v is not between 0 and 1,000,000", name, value)
	}
	*w = *w.filled()
	w.v[k] = float32(value)
	return nil
}

// MarshalJSON writes the weights that differ from those that Helve comes with.
func (w Weights) MarshalJSON() ([]byte, error) {
	out := map[string]float64{}
	for i, x := range w.filled().v {
		if x != defaults.v[i] {
			out[knobs[i].Name] = float64(x)
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads weights by name. Those that are not given are those that
// Helve comes with.
func (w *Weights) UnmarshalJSON(data []byte) error {
	var in map[string]float64
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	*w = *defaults
	for name, value := range in {
		if err := w.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

// occurrence returns what an occurrence counts in a field of that many words,
// where it counts weight in one of the usual length.
func (w *Weights) occurrence(f field, weight, words float32) float32 {
	usual, decay := max(w.v[f.own(1)], .1), min(w.v[f.own(2)], 1)
	return weight / (1 - decay + decay*words/usual)
}

// digest tells apart weights by which the same tools are indexed differently.
func (w *Weights) digest() uint64 {
	h := fnv.New64a()
	for i, k := range knobs {
		if k.Indexes {
			fmt.Fprintf(h, "%s=%g;", k.Name, w.v[i])
		}
	}
	return h.Sum64()
}
