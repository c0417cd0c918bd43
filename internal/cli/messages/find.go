// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	// mostFound is how many entries an answer has at most.
	mostFound = 3
	// enough is the part of the words of an example, by weight, that a message must have.
	enough = 0.7
)

// Found is an entry that a message is like.
type Found struct {
	// Section is the title of its section.
	Section string `json:"section"`
	Entry
}

// Find returns the entries that a message is most like, the best first; none if it is like
// none. The message may be a part of a longer one, or a reason.
func Find(message string) []Found { return newIndex().find(message) }

func (i *index) find(message string) []Found {
	said := wordsOf(message)
	var hits []hit
	for _, e := range i.entries {
		if score := i.score(e, said); score > 0 {
			hits = append(hits, hit{e.Found, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	var found []Found
	for _, h := range hits[:min(len(hits), mostFound)] {
		found = append(found, h.Found)
	}
	return found
}

type hit struct {
	Found
	score float64
}

// index knows how often each word is in the catalogue: a rare word says more.
type index struct {
	entries     []indexed
	entriesWith map[string]int
}

// indexed is an entry with the words of its examples.
type indexed struct {
	Found
	examples [][]string
}

var quoted = regexp.MustCompile("`([^`]+)`")

func newIndex() *index {
	i := &index{entriesWith: map[string]int{}}
	for _, chapter := range Chapters() {
		for _, s := range chapter {
			for _, p := range s.Parts {
				i.add(s.Title, p.Entries)
			}
		}
	}
	return i
}

func (i *index) add(section string, entries []Entry) {
	for _, e := range entries {
		added, words := indexed{Found: Found{section, e}}, map[string]bool{}
		for _, quote := range quoted.FindAllStringSubmatch(e.Seen, -1) {
			example := wordsOf(quote[1])
			added.examples = append(added.examples, example)
			for _, word := range example {
				words[word] = true
			}
		}
		for word := range words {
			i.entriesWith[word]++
		}
		i.entries = append(i.entries, added)
	}
}

// wordsOf returns the words of a message without what differs from one object to the next:
// names, versions, numbers and times.
func wordsOf(message string) []string {
	var words []string
	for _, word := range strings.FieldsFunc(message, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"';:,()=…`, r) }) {
		word = strings.Trim(word, ".-")
		if word != "" && !strings.ContainsFunc(word, isOfAName) && !slices.Contains(exampleNames, word) {
			words = append(words, word)
		}
	}
	return words
}

// exampleNames are names of objects in the catalogue that look like words.
var exampleNames = []string{"app", "apps", "cart", "database", "nights", "podinfo", "prod", "production", "qa", "shop", "staging", "store", "web", "working-hours", "year-end"}

// isOfAName reports whether a character is hardly in a word of a message. Fields and
// annotations are recognised by the words around them.
func isOfAName(r rune) bool { return unicode.IsDigit(r) || strings.ContainsRune("/@{}<>[]", r) }

// score returns how much of a message an entry explains; zero if it is not like the entry.
func (i *index) score(e indexed, said []string) float64 {
	total := 0.0
	for _, example := range e.examples {
		whole, common := 0.0, 0.0
		for _, word := range example {
			weight := i.weight(word)
			whole += weight
			if slices.Contains(said, word) {
				common += weight
			}
		}
		if says(example) && common >= enough*whole {
			total += common * common / whole
		}
	}
	return total
}

// says reports whether an example says something: it is a sentence, or a reason.
func says(example []string) bool {
	return len(example) > 1 || len(example) == 1 && strings.ContainsFunc(example[0][1:], unicode.IsUpper)
}

func (i *index) weight(word string) float64 {
	return math.Log(float64(1+len(i.entries)) / float64(i.entriesWith[word]))
}
