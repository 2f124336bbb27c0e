package lexicon

import "testing"

// A definition of middling length, as tools have it.
const typical = `create_calendar_event
Create a new event in the user's calendar. Attendees are invited by email, and a video conference link can be added. Returns the identifier of the event and a link to it. Recurring events take an RRULE string as RFC 5545 has it.
title The title of the event
start When the event begins, as ISO 8601 date and time with time zone
end When the event ends, as ISO 8601 date and time
attendees Email addresses of those to invite
location Where the event takes place, as free text
reminder_minutes How many minutes before the start a reminder is shown`

func benchmarkMatch(b *testing.B, text string, hint Hint) {
	l := Default()
	dst := l.Match(nil, text, hint)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		dst = l.Match(dst[:0], text, hint)
	}
	b.ReportMetric(float64(len(dst)), "matches")
}

func BenchmarkMatchDefinition(b *testing.B) {
	benchmarkMatch(b, typical, Hint{Likely: English, Firm: true})
}

func BenchmarkMatchQuery(b *testing.B) {
	for name, text := range map[string]string{
		"en": "delete all the files in a folder that are older than a week",
		"fr": "supprimer tous les fichiers d'un dossier qui ont plus d'une semaine",
		"de": "alle Dateien eines Ordners löschen, die älter als eine Woche sind",
		"ja": "一週間より古いフォルダー内のファイルをすべて削除する",
		"ru": "удалить все файлы в папке старше недели",
	} {
		b.Run(name, func(b *testing.B) { benchmarkMatch(b, text, Hint{}) })
	}
}

// A query whose words were never met: stems are computed.
func BenchmarkMatchQueryCold(b *testing.B) {
	l := Default()
	var m matcher
	var dst []Match
	b.ReportAllocs()
	for b.Loop() {
		m.lex, m.stem.known = l, nil
		dst = m.match(dst[:0], "supprimer tous les fichiers d'un dossier qui ont plus d'une semaine", Hint{})
	}
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := load(compiled); err != nil {
			b.Fatal(err)
		}
	}
}
