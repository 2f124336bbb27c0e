package lexicon

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

const small = `delete (action)
en: delete, remove, get rid of
fr: supprimer, effacer, efface
de: löschen, entfernen
es: borrar, eliminar
it: eliminare, rimuovere
pt: excluir, apagar
nl: verwijderen, wissen
pl: usunąć, usuwać, usuń
ru: удалить, удали
tr: silmek, sil
ar: حذف, احذف
id: hapus, menghapus
ja: 削除, 消す, DEL打
ko: 삭제, 지우다
zh: 删除, 刪除
da: slette, slet

file (object)
en: file
fr: fichier
de: Datei
es: archivo, fichero
it: file
pt: arquivo, ficheiro
nl: bestand
pl: plik
ru: файл
tr: dosya
ar: ملف, ملفات
id: berkas
ja: ファイル
ko: 파일
zh: 文件, 檔案
da: fil

list (object)
en: list
de: Liste
nl: lijst
da: liste

log (object)
en: log
ja: ログ
`

func lexiconOf(t testing.TB, text string) *Lexicon {
	t.Helper()
	f, problems := parse("test.txt", []byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	b := newBuilder(nil)
	if err := b.add(f); err != nil {
		t.Fatal(err)
	}
	l, err := b.lexicon()
	if err != nil {
		t.Fatal(err)
	}
	l, err = load(l.encode())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// said returns what a text stands for, as "word=concept …".
func said(l *Lexicon, text string, hint Hint) string {
	var out []string
	for _, m := range l.Match(nil, text, hint) {
		out = append(out, fmt.Sprintf("%s=%s", text[m.From:m.To], l.Name(m.Concept)))
	}
	return strings.Join(out, " ")
}

func TestMatch(t *testing.T) {
	l := lexiconOf(t, small)
	for _, c := range []struct{ text, want string }{
		{"Get rid of the files", "Get rid of=delete files=file"},
		{"deleteFile", "delete=delete File=file"},
		{"supprimez mes fichiers", "supprimez=delete fichiers=file"},
		{"Löschungen der Dateiliste", "Löschungen=delete Dateiliste=file Dateiliste=list"},
		{"Dateilisten entfernen", "Dateilisten=file Dateilisten=list entfernen=delete"},
		{"eliminar los archivos", "eliminar=delete archivos=file"},
		{"verwijder de bestandslijst", "verwijder=delete bestandslijst=file bestandslijst=list"},
		{"usuwanie plików", "usuwanie=delete plików=file"},
		{"удаление файлов", "удаление=delete файлов=file"},
		{"dosyaları silmek istiyorum", "dosyaları=file silmek=delete"},
		{"احذف الملفات", "احذف=delete الملفات=file"},
		{"menghapuskan berkasnya", "menghapuskan=delete berkasnya=file"},
		{"ファイルを消してください", "ファイル=file 消し=delete"},
		{"파일을 삭제해 줘", "파일=file 삭제=delete"},
		{"파일 지우고 싶어", "파일=file 지우=delete"},
		{"把这个文件删除", "文件=file 删除=delete"},
		{"slet filerne", "slet=delete filerne=file"},
		{"ブログを書く", ""},
		{"DEL打って", "DEL打=delete"},
		{"suprimer le fihcier", "suprimer=delete fihcier=file"},
		{"effacer, effaccer, effcaer", "effacer=delete effaccer=delete effcaer=delete"},
		{"deleet", ""},
		{"", ""},
		{"2024 !?", ""},
	} {
		if got := said(l, c.text, Hint{}); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestAccentsTellWordsApart(t *testing.T) {
	l := lexiconOf(t, "market (object)\nfr: marché\n\nwalk (action)\nfr: marche\n\ntown (object)\nfr: cité\n")
	for text, want := range map[string]string{"le marché": "market", "la marche": "walk", "la cite": "town", "LE MARCHÉ": "market"} {
		list := l.Match(nil, text, Hint{})
		slices.SortFunc(list, func(a, b Match) int { return cmp.Compare(b.Weight, a.Weight) })
		if len(list) == 0 || l.Name(list[0].Concept) != want || len(list) > 1 && list[1].Weight == list[0].Weight {
			t.Errorf("%q: %+v, want %s before all", text, list, want)
		}
	}
}

// What stands for something only as if inflected counts less where it is likely
// something else: a name, a pronoun, the stem of what a suffix is left of.
func TestLikelierThanInflected(t *testing.T) {
	l := lexiconOf(t, "lamp (object)\nit: luce\n\nmenu (object)\nru: меню\n\nsum (action)\ntr: topla\n\nmeeting (object)\ntr: toplantı\n\nnew (quality)\nit: domani\n")
	for text, want := range map[string]string{
		"metti domani con Luca": "new",
		"accendi le luci":       "lamp",
		"пришли меня":           "",
		"bugün toplantım var":   "meeting",
	} {
		list := l.Match(nil, text, Hint{})
		slices.SortStableFunc(list, func(a, b Match) int { return cmp.Compare(b.Weight, a.Weight) })
		got := ""
		if len(list) > 0 && list[0].Weight > .5 {
			got = l.Name(list[0].Concept)
		}
		if got != want || len(list) > 1 && list[1].Weight > .6 {
			t.Errorf("%q: %+v, want %s before all", text, list, want)
		}
	}
}

// Latin letters among others are most often English.
func TestMixedScripts(t *testing.T) {
	l := lexiconOf(t, "play_game (action)\nnl: main\n\npublish (action)\nen: release\n")
	for text, want := range map[string]float32{"ブランチmainにマージ": 0, "открой ветку main": 0, "main": 1, "выложи release": 1} {
		got := float32(0)
		for _, m := range l.Match(nil, text, Hint{}) {
			got = max(got, m.Weight)
		}
		if got < want || want == 0 && got > .5 {
			t.Errorf("%q: weighs %v, want %v", text, got, want)
		}
	}
}

// An action of several words is about what it is done to as well.
func TestMatchWithinActions(t *testing.T) {
	l := lexiconOf(t, small+"\nmerge_code (action)\nen: merge a pull request, log in\nja: 削除申請\n\nmerge (action)\nen: merge\n\npull_request (object)\nen: pull request\n\nrequest (object)\nja: 申請\n")
	for text, want := range map[string]string{
		"merging a pull request": "merging a pull request=merge_code merging=merge pull request=pull_request",
		"log in":                 "log in=merge_code",
		"削除申請":                   "削除申請=merge_code 削除=delete 申請=request",
		"get rid of":             "get rid of=delete",
	} {
		if got := said(l, text, Hint{}); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestMatchFirmInEnglish(t *testing.T) {
	l := lexiconOf(t, small)
	if got := said(l, "the fil of archivo deleted", Hint{Likely: English, Firm: true}); got != "deleted=delete" {
		t.Errorf("%q", got)
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	m := matcher{lex: lexiconOf(t, small)}
	var dst []Match
	match := func() {
		dst = m.match(dst[:0], "supprimez mes fichiers, Dateilisten and ファイルを消して", Hint{})
	}
	match()
	if n := testing.AllocsPerRun(100, match); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestExtend(t *testing.T) {
	l := lexiconOf(t, small)
	more, err := l.Extend("mine.txt", []byte("file (object)\nen: dossier\n\nwidget (object)\nen: widget, gizmo\nis: file\nnear: delete\n"))
	if err != nil {
		t.Fatal(err)
	}
	if more, err = more.Extend("yours.txt", []byte("widget (object)\nfr: bidule\n")); err != nil {
		t.Fatal(err)
	}
	if got, want := said(more, "delete dossier bidule gizmos", Hint{}), "delete=delete dossier=file bidule=widget gizmos=widget"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := said(l, "dossier", Hint{}); got != "" {
		t.Errorf("the lexicon below knows %q", got)
	}
	file, _ := more.Find("file")
	widget, _ := more.Find("widget")
	if !slices.Equal(more.Broader(widget), []ID{file}) {
		t.Errorf("widget is %v, want %v", more.Broader(widget), file)
	}
	remove, _ := more.Find("delete")
	if !slices.Equal(more.Near(widget), []ID{remove}) {
		t.Errorf("widget is near %v, want %v", more.Near(widget), remove)
	}
	for text, want := range map[string]string{
		"Widget\nen: a\n":                    `mine.txt:1: "Widget" does not begin a concept`,
		"a (object)\nxx: b\n":                `mine.txt:2: there is no language "xx"`,
		"a (object)\nen: b\nen: c\n":         `mine.txt:3: en stands in line 2 already`,
		"a (object)\nen: b\nis: nothing\n":   `mine.txt:3: a is nothing, which is no concept`,
		"a (object)\nen: b\nnear: nothing\n": `mine.txt:3: a is near nothing, which is no concept`,
		"file (action)\nen: b\n":             `mine.txt:1: file is known as object`,
	} {
		if _, err := l.Extend("mine.txt", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestMatchFromManyGoroutines(t *testing.T) {
	l := Default()
	texts := []string{"supprimez mes fichiers", "Dateilisten löschen", "ファイルを消して", "delete the files", "파일을 삭제해 줘"}
	want := make([]string, len(texts))
	for i, s := range texts {
		want[i] = said(l, s, Hint{})
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i, s := range texts {
				if got := said(l, s, Hint{}); got != want[i] || got == "" {
					t.Errorf("%q: %q, want %q", s, got, want[i])
				}
			}
		})
	}
	all.Wait()
}
