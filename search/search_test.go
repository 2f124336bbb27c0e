package search_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/helve-ai/helve/schema"
	"github.com/helve-ai/helve/search"
	"github.com/helve-ai/helve/tool"
)

var anything = schema.Must(`{"type":"object"}`)

// set makes a set of tools, with all that a registry demands filled in.
func set(t testing.TB, defs ...tool.Definition) *tool.Set {
	t.Helper()
	var tools []*tool.Tool
	for _, d := range defs {
		tools = append(tools, made(d))
	}
	return registered(t, tools...)
}

func made(d tool.Definition) *tool.Tool {
	if d.Description == "" {
		d.Description = "-"
	}
	if d.Input == nil {
		d.Input = anything
	}
	return &tool.Tool{Definition: d, Handle: func(context.Context, *tool.Call) (*tool.Result, error) { return tool.Text(""), nil }}
}

func registered(t testing.TB, tools ...*tool.Tool) *tool.Set {
	t.Helper()
	var reg tool.Registry
	if err := reg.Add(tools...); err != nil {
		t.Fatal(err)
	}
	return reg.Set()
}

func index(t testing.TB, defs ...tool.Definition) *search.Index {
	t.Helper()
	ix := search.New(search.Options{})
	ix.Sync(set(t, defs...))
	return ix
}

func find(t testing.TB, ix *search.Index, text string) []search.Hit {
	t.Helper()
	hits, err := ix.Search(context.Background(), search.Query{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

func names(hits []search.Hit) []string {
	out := []string{}
	for _, h := range hits {
		out = append(out, h.Tool.Name)
	}
	return out
}

// house is a small catalogue of everyday tools.
func house() []tool.Definition {
	return []tool.Definition{
		{Name: "filesystem.read", Description: "Read the contents of a file.", Aliases: []string{"FileRead", "cat"},
			Input: schema.Must(`{"type":"object","properties":{"path":{"type":"string","description":"where the file is"}}}`)},
		{Name: "filesystem.delete", Description: "Delete a file for good.", Aliases: []string{"rm", "删除文件", "supprimer un fichier"}},
		{Name: "filesystem.list", Description: "List the entries of a directory."},
		{Name: "weather.now", Description: "Tell the current weather in a city.", Tags: []string{"météo", "Wetter", "погода"}},
		{Name: "mcp.github.createPullRequest", Description: "Open a pull request on GitHub.", Title: "Create a pull request"},
		{Name: "pdf.download", Description: "Download a PDF document.", Aliases: []string{"下载PDF文件", "ดาวน์โหลดเอกสาร"}},
		{Name: "image.generate", Description: "Generate an image from a prompt.", Help: "The picture is returned as PNG."},
		{Name: "japan.forecast", Description: "都市の天気予報を取得します。"},
		{Name: "korea.forecast", Description: "도시의 날씨 정보를 조회합니다."},
		{Name: "shop.price", Description: "Ürünün fiyatını söyler.", Aliases: []string{"kılıç fiyatı"}},
		{Name: "photo.tune", Description: "Adjust colours.", Tags: []string{"Bildbearbeitungsprogramm"}},
		{Name: "map.route", Description: "Plan a way.", Tags: []string{"Straße"}},
		{Name: "health.pulse", Description: "Count the beats.", Tags: []string{"cœur"}},
		{Name: "greek.reader", Description: "ανάγνωση κειμένων"},
		{Name: "kitchen.bread", Description: "Make smørrebrød."},
		{Name: "music.play", Description: "Reproduce canciones.", Tags: []string{"canción"}},
		{Name: "hook.call", Description: "Trigger a webhook."},
		{Name: "web.search", Description: "Search the web."},
		{Name: "desk.help", Description: "Call a person."},
		{Name: "calendar.add_event", Description: "Put an appointment into the calendar.", SideEffects: []string{"invites the guests by e-mail"}},
	}
}

func TestFinds(t *testing.T) {
	ix := index(t, house()...)
	for _, c := range []struct{ query, want string }{
		{"read a file", "filesystem.read"},
		{"what is the weather like in Paris?", "weather.now"},
		{"deleting files", "filesystem.delete"}, // stems
		{"directories", "filesystem.list"},
		{"pull requests", "mcp.github.createPullRequest"}, // camelCase
		{"createpullrequest", "mcp.github.createPullRequest"},
		{"github", "mcp.github.createPullRequest"},
		{"appointment", "calendar.add_event"},
		{"invite guests", "calendar.add_event"}, // side effects
		{"email", "calendar.add_event"},         // e-mail
		{"PNG picture", "image.generate"},       // help
		{"appoint", "calendar.add_event"},       // prefix
		{"genrate an image", "image.generate"},  // a slip
		{"dowload", "pdf.download"},
		{"wheather", "weather.now"},
		{"direcotyr listing", "filesystem.list"},
		{"METEO à Lyon", "weather.now"}, // accents, a tag in another language
		{"das Wetter morgen", "weather.now"},
		{"погоду в Москве", "weather.now"}, // Cyrillic, stems
		{"supprimer des fichiers", "filesystem.delete"},
		{"请帮我删除这个文件", "filesystem.delete"},
		{"下载pdf文件", "pdf.download"}, // scripts side by side
		{"ช่วยดาวน์โหลดเอกสารให้หน่อย", "pdf.download"},
		{"ｐｄｆ", "pdf.download"}, // full-width letters
		{"都市の天気予報を教えて", "japan.forecast"},
		{"도시의 날씨 정보를 알려줘", "korea.forecast"},
		{"天気を教えて", "weather.now"}, // concepts
		{"hava durumu", "weather.now"},
		{"erase a file", "filesystem.delete"},
		{"kilicin fiyatı", "shop.price"}, // dotless i
		{"KILIÇ FİYATI", "shop.price"},
		{"Bildbearbeitung", "photo.tune"}, // a German compound, by its beginning
		{"STRASSE", "map.route"},
		{"coeur", "health.pulse"},
		{"Ανάγνωση", "greek.reader"},
		{"Smorrebrod", "kitchen.bread"},
		{"cancion", "music.play"},
		{"help the user", "desk.help"},
		{"web hooks or a web hook", "hook.call"},
	} {
		if hits := find(t, ix, c.query); len(hits) == 0 || hits[0].Tool.Name != c.want {
			t.Errorf("%q finds %v, want %s first", c.query, names(hits), c.want)
		}
	}
}

func TestFindsNothing(t *testing.T) {
	ix := index(t, house()...)
	for _, q := range []string{"", "   ", "qwxyz", "the", "what is that", "!?…", "\x00\x01\x02", "7", "tread", "zzzzzzzzzzzzzz", "的", "\xff\xfe",
		"sourdough needs patience and a calm hand", "philosophy of Kant and Hegel", "我爱你"} {
		if hits := find(t, ix, q); len(hits) > 0 {
			t.Errorf("%q finds %v", q, names(hits))
		}
	}
	if hits := find(t, search.New(search.Options{}), "read"); len(hits) > 0 {
		t.Errorf("an empty index finds %v", names(hits))
	}
	var zero search.Index
	if hits := find(t, &zero, "read"); len(hits) > 0 || zero.Len() != 0 {
		t.Errorf("the zero index finds %v", names(hits))
	}
}

// Among few tools, too, a sentence finds the one that fits it, though most of
// its characters stand for nothing that a tool says.
func TestFewToolsAndSentencesWithoutSpaces(t *testing.T) {
	ix := index(t, house()[:10]...)
	for _, q := range []string{"明日大阪に出張するのですが、傘を持って行った方がいいでしょうか", "내일 부산으로 출장 가는데 우산을 가져가야 할까요", "我想知道明天出门上班的时候需不需要带一把雨伞，麻烦你告诉我一下"} {
		if got := names(find(t, ix, q)); len(got) == 0 || !slices.Contains([]string{"weather.now", "japan.forecast", "korea.forecast"}, got[0]) {
			t.Errorf("%q finds %v, want the weather first", q, got)
		}
	}
}

// The s of "what's" makes no name of it.
func TestShortFormsAreNoNames(t *testing.T) {
	ix := index(t, append(house(), tool.Definition{Name: "chat.ring", Description: "Ring somebody up by WhatsApp."})...)
	if got := names(find(t, ix, "what's the weather like")); len(got) == 0 || got[0] != "weather.now" || slices.Contains(got, "chat.ring") {
		t.Errorf("got %v", got)
	}
}

// What a request rules out is not what it looks for.
func TestRuledOut(t *testing.T) {
	ix := index(t, append(house(),
		tool.Definition{Name: "post.send_email", Description: "Send a message by e-mail."},
		tool.Definition{Name: "chat.send_message", Description: "Send a message to a chat."},
		tool.Definition{Name: "phone.send_sms", Description: "Send a text message."},
		tool.Definition{Name: "notes.add_note", Description: "Add a note on a meeting."},
	)...)
	for q, want := range map[string]string{
		"send a message without e-mail":                  "phone.send_sms chat.send_message",
		"send her a message without sending an email":    "phone.send_sms chat.send_message",
		"put a note on the meeting, not in the calendar": "notes.add_note",
		"a message in the chat instead of an e-mail":     "chat.send_message",
		"Schick ihr eine Nachricht, aber nicht per Mail": "phone.send_sms chat.send_message",
		"schicke eine Nachricht ohne E-Mail":             "phone.send_sms chat.send_message",
		"envoie-lui un message sans passer par l'e-mail": "phone.send_sms chat.send_message",
		"envía un mensaje sin correo electrónico":        "phone.send_sms chat.send_message",
		"отправь сообщение без электронной почты":        "phone.send_sms chat.send_message",
		"E-posta olmadan mesaj gönder":                   "phone.send_sms chat.send_message",
		"给她发消息，不用电子邮件":                                   "phone.send_sms chat.send_message",
		"メールではなくチャットでメッセージを送って":                          "chat.send_message",
		"이메일 말고 채팅으로 메시지 보내줘":                            "chat.send_message",
		"send an email": "post.send_email",
		"set it in the font called Sans email it to her":    "post.send_email", // no French
		"add a note on the meeting without writing minutes": "notes.add_note",  // to write is what is wanted
		"do not forget to send an email":                    "post.send_email",
		"no e-mail has come, send one":                      "post.send_email",
	} {
		got := names(find(t, ix, q))
		if len(got) == 0 || !slices.Contains(strings.Fields(want), got[0]) {
			t.Errorf("%q finds %v, want %s first", q, got, want)
		}
	}
	hits, err := ix.Search(t.Context(), search.Query{Text: "a message in the chat instead of an e-mail", Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		sum := 0.
		for _, p := range h.Parts {
			sum += p.Score
		}
		if math.Abs(sum-h.Score) > 1e-3 {
			t.Errorf("%s: the parts %v add up to %v, want %v", h.Tool.Name, h.Parts, sum, h.Score)
		}
	}
}

// However much the texts of others say a name, the tool of that name comes first.
func TestExactNamesWin(t *testing.T) {
	loud := "file read read_file filesystem.read filesystem__read filesystem read, cat"
	ix := index(t, append(house(),
		tool.Definition{Name: "loud.read_read", Title: "Read, read, read", Description: loud, Help: loud, Tags: []string{loud}},
		tool.Definition{Name: "cat", Description: "Pictures of pets."},
		tool.Definition{Name: "mcp.files.move", Description: "Move something."},
	)...)
	for _, c := range []struct{ query, want, why string }{
		{"filesystem.read", "filesystem.read", "exact name"},
		{"filesystem__read", "filesystem.read", "exact name"},
		{"Filesystem Read", "filesystem.read", "exact name"},
		{"read", "filesystem.read", "exact name"},
		{"FileRead", "filesystem.read", "exact alias"},
		{"file read", "filesystem.read", "exact alias"},
		{"rm", "filesystem.delete", "exact alias"},
		{"删除文件", "filesystem.delete", "exact alias"},
		{"cat", "cat", "exact name"}, // a name before an alias
		{"move", "mcp.files.move", "exact name"},
		{"files.move", "mcp.files.move", ""},
		{"please use weather.now to read a file", "weather.now", "name mentioned"},
	} {
		hits := find(t, ix, c.query)
		if len(hits) == 0 || hits[0].Tool.Name != c.want || !strings.HasPrefix(hits[0].Why, c.why) {
			t.Errorf("%q finds %v, want %s first because of %s", c.query, hits, c.want, c.why)
		}
	}
}

func TestLongNamesByTheirWireForm(t *testing.T) {
	long := "mcp.archive." + strings.Repeat("very_", 14) + "long"
	ix := index(t, append(house(), tool.Definition{Name: long})...)
	if hits := find(t, ix, tool.Wire(long)); len(hits) == 0 || hits[0].Tool.Name != long {
		t.Errorf("%q finds %v", tool.Wire(long), names(hits))
	}
}

// A tool that asks for the id of a thing brings along the one that finds such things.
func TestBringsAlong(t *testing.T) {
	defs := house()
	for _, n := range []string{"films.search_film", "films.get_cast", "films.film_posters", "films.rate"} {
		d := tool.Definition{Name: n, Description: map[string]string{"films.search_film": "Look titles up.", "films.get_cast": "Who acts in it.", "films.film_posters": "Placards.", "films.rate": "Give stars."}[n]}
		if n == "films.get_cast" {
			d.Input = schema.Must(`{"type":"object","properties":{"film_id":{"type":"integer"}}}`)
		}
		defs = append(defs, d)
	}
	ix := index(t, defs...)
	if got := names(find(t, ix, "who acts in Titanic")); len(got) != 2 || got[0] != "films.get_cast" || got[1] != "films.search_film" {
		t.Errorf("got %v", got)
	}
	if got := names(find(t, ix, "who acts in it")); len(got) != 1 {
		t.Errorf("nothing is named, and yet %v", got)
	}
}

// A tool that asks where a place lies brings along the one that finds that out,
// but none that is told it, too.
func TestBringsAlongWhereaboutsOfPlaces(t *testing.T) {
	asks := schema.Must(`{"type":"object","properties":{"latitude":{"type":"number"},"longitude":{"type":"number"}}}`)
	ix := index(t, append(house(),
		tool.Definition{Name: "sky.tides", Description: "High and low tide.", Tags: []string{"Flut"}, Input: asks},
		tool.Definition{Name: "atlas.geocode", Description: "Turn an address into numbers."},
		tool.Definition{Name: "atlas.reverse_geocode", Description: "Turn numbers into an address.", Input: asks})...)
	if got := names(find(t, ix, "when is the tide high in Cuxhaven")); len(got) < 2 || got[0] != "sky.tides" || got[1] != "atlas.geocode" || slices.Contains(got, "atlas.reverse_geocode") {
		t.Errorf("got %v", got)
	}
	if got := names(find(t, ix, "Wann ist die Flut in Cuxhaven?")); !slices.Contains(got, "atlas.geocode") {
		t.Errorf("in German: %v", got)
	}
	if got := names(find(t, ix, "Wann ist die Flut mit dem Wasser da?")); slices.Contains(got, "atlas.geocode") {
		t.Errorf("nouns of German are no names, and yet %v", got)
	}
	if got := names(find(t, ix, "when is the tide high")); slices.Contains(got, "atlas.geocode") {
		t.Errorf("nothing is named, and yet %v", got)
	}
}

// Many tools do the same, with other things: what a request is about counts
// more than what is to be done.
func TestThingsCountMoreThanWhatIsDone(t *testing.T) {
	var defs []tool.Definition
	for _, n := range []string{"red", "brown", "white", "grey", "old", "quick", "lazy", "wild"} {
		defs = append(defs, tool.Definition{Name: "fox." + n, Description: "A fox."})
	}
	defs = append(defs, tool.Definition{Name: "a.x", Description: "Summarize."}, tool.Definition{Name: "b.x", Description: "Poem."})
	ix := index(t, defs...)
	for _, q := range []string{"summarize the poem", "das Gedicht zusammenfassen"} {
		if got := names(find(t, ix, q)); len(got) != 2 || got[0] != "b.x" {
			t.Errorf("%q finds %v", q, got)
		}
	}
}

// A query that asks for two things finds a tool for each among the first,
// however much there is of the one.
func TestIntents(t *testing.T) {
	defs := []tool.Definition{{Name: "mail.send", Description: "Send a mail to somebody."}, {Name: "mail.list", Description: "List the mails of a mailbox."}}
	for i := range 20 {
		defs = append(defs, tool.Definition{Name: fmt.Sprintf("disk%02d.read_file", i), Description: "Read the text of a file on a disk."})
	}
	for i := range 30 {
		defs = append(defs, tool.Definition{Name: fmt.Sprintf("other%02d.spin", i), Description: "Spin a wheel."})
	}
	ix := index(t, defs...)
	for _, q := range []string{
		"read the text of the file on the disk and send a mail", "read the text of a file on the disk, then mail it to somebody", "Send a mail. But read the file on the disk.",
		"lies die Datei von der Festplatte und sende eine E-Mail", "lis le fichier sur le disque puis envoie un mail", "lee el archivo del disco y envía un correo",
		"读取磁盘上的文件，然后发送邮件", "ディスクのファイルを読んで、それからメールを送信", "прочитай файл на диске, затем отправь письмо", "diskteki dosyayı oku ve sonra e-posta gönder",
	} {
		got := names(find(t, ix, q))
		first := got[:min(4, len(got))]
		if !slices.Contains(first, "mail.send") || !slices.ContainsFunc(first, func(n string) bool { return strings.HasSuffix(n, "read_file") }) {
			t.Errorf("%q finds %v first", q, first)
		}
	}
}

func TestLimitAndOrder(t *testing.T) {
	var defs []tool.Definition
	for i := range 30 {
		defs = append(defs, tool.Definition{Name: fmt.Sprintf("m.turn%02d", (i*7)%30), Description: "Spin a wheel."})
	}
	ix := index(t, defs...)
	for limit, want := range map[int]int{0: 10, 1: 1, 25: 25, 30: 30, 1000: 30, -3: 10} {
		hits, err := ix.Search(t.Context(), search.Query{Text: "spin the wheel", Limit: limit})
		if err != nil || len(hits) != want {
			t.Fatalf("limit %d: %d hits, %v; want %d", limit, len(hits), err, want)
		}
		for i, h := range hits { // all score alike: by name
			if name := fmt.Sprintf("m.turn%02d", i); h.Tool.Name != name || h.Score != hits[0].Score {
				t.Errorf("limit %d: hit %d is %s with %v, want %s with %v", limit, i, h.Tool.Name, h.Score, name, hits[0].Score)
			}
		}
	}
}

func TestDoneContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := index(t, house()...).Search(ctx, search.Query{Text: "read"}); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

func TestWhy(t *testing.T) {
	ix := index(t, house()...)
	hits, err := ix.Search(t.Context(), search.Query{Text: "read a file at a path", Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	want := "name: read; description: read, file; aliases: file, read; parameters: path; parameter descriptions: file"
	if hits[0].Why != want {
		t.Errorf("got  %s\nwant %s", hits[0].Why, want)
	}
	if hits := find(t, ix, "read a file at a path"); hits[0].Why != "read, file, path" {
		t.Errorf("in short: %s", hits[0].Why)
	}
	for _, h := range find(t, ix, "picture dowload deleting FileRead погоду") {
		if h.Why == "" {
			t.Errorf("%s: no why", h.Tool.Name)
		}
	}
}

// What is hidden is not found, and what is not hidden is found as if the rest
// were not there: a hidden tool that knows a misspelt word does not keep others
// from being meant by it.
func TestAccept(t *testing.T) {
	odd := tool.Definition{Name: "secret.wheather", Description: "The wheather, deleted, zorbed and dowload."}
	ix := index(t, append(house(), odd)...)
	visible := func(t *tool.Tool) bool { return t.ModuleName() != "secret" }
	plain := index(t, house()...)
	for _, q := range []string{"wheather", "deleted", "dowload", "zorbed", "zorb", "secret.wheather", "secret", "weather"} {
		hits, err := ix.Search(t.Context(), search.Query{Text: q, Accept: visible})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := names(hits), names(find(t, plain, q)); !slices.Equal(got, want) {
			t.Errorf("%q finds %v beside a hidden tool and %v without it", q, got, want)
		}
	}
	if got := ix.Suggest("secret.wheathers", 5, visible); slices.Contains(got, odd.Name) {
		t.Errorf("suggests the hidden tool: %v", got)
	}
}

func TestSuggest(t *testing.T) {
	ix := index(t, house()...)
	for name, want := range map[string]string{
		"delete_a_file":     "filesystem.delete",
		"removeFile":        "",
		"fileSystem.Delte":  "filesystem.delete",
		"getWeather":        "weather.now",
		"fs_read_file":      "filesystem.read",
		"github_createPull": "mcp.github.createPullRequest",
	} {
		got := ix.Suggest(name, 3, nil)
		if len(got) > 3 || want != "" && (len(got) == 0 || got[0] != want) {
			t.Errorf("for %s it suggests %v, want %s first", name, got, want)
		}
	}
	if got := ix.Suggest("xyzzy", 5, nil); len(got) > 0 {
		t.Errorf("for xyzzy it suggests %v", got)
	}
	if got := ix.Suggest("read", 0, nil); got != nil {
		t.Errorf("none asked for, got %v", got)
	}
}

func TestHostile(t *testing.T) {
	ix := index(t, house()...)
	long := strings.Repeat("weather file ", 10_000)
	if hits := find(t, ix, long); len(hits) == 0 {
		t.Error("a long query finds nothing")
	}
	for _, q := range []string{
		strings.Repeat("x", 100_000), strings.Repeat("删", 50_000), strings.Repeat("a b ", 25_000), strings.Repeat("aB", 50_000),
		strings.Repeat("\u0301", 10_000), "a" + strings.Repeat("\u0301", 10_000), strings.Repeat("é", 50_000), strings.Repeat("-", 50_000),
		"\x00read\x00file\x1b[31m", strings.Repeat("1", 1000), strings.Repeat("ก็", 9000), "read\xfffile\xc3", strings.Repeat("𝔞", 9000),
		strings.Repeat("a-", 5000), strings.Repeat("ﷺ", 3000), strings.Repeat("İ", 9000), "\x01filesystemread",
	} {
		find(t, ix, q)
		ix.Suggest(q, 5, nil)
	}
	wild := tool.Definition{
		Name: "wild.one", Description: strings.Repeat("ﷺ é́́́ 下载 ", 2000) + strings.Repeat("z", 70_000) + "\x00\x01\x02",
		Aliases: []string{"", " ", strings.Repeat("long ", 5000), "\xff"}, Tags: []string{"\x01filesystemread"},
		Examples: []json.RawMessage{json.RawMessage("{"), nil},
	}
	ix.Sync(set(t, append(house(), wild)...))
	if hits := find(t, ix, "filesystem.read"); hits[0].Tool.Name != "filesystem.read" {
		t.Errorf("a tag passes for a name: %v", names(hits))
	}
}

func TestManyAlike(t *testing.T) {
	var defs []tool.Definition
	for i := range 10_000 {
		defs = append(defs, tool.Definition{Name: fmt.Sprintf("m%d.get_user_data", i), Description: "Get the data of a user."})
	}
	ix := index(t, defs...)
	if hits := find(t, ix, "get user data"); len(hits) != 10 || hits[0].Tool.Name != "m0.get_user_data" {
		t.Errorf("got %v", names(hits))
	}
	if hits := find(t, ix, "m77.get_user_data"); len(hits) == 0 || hits[0].Tool.Name != "m77.get_user_data" {
		t.Errorf("got %v", names(hits))
	}
}

// A request for several things is not answered with one of them over and over.
func TestRepeats(t *testing.T) {
	var defs []tool.Definition
	for i := range 8 {
		defs = append(defs, tool.Definition{Module: fmt.Sprintf("sky%d", i), Name: fmt.Sprintf("sky%d.forecast", i), Description: "Weather forecast of a city, with rain and temperature."})
	}
	defs = append(defs, tool.Definition{Module: "rooms", Name: "rooms.hotels", Description: "Finds hotels."})
	for i := range 20 {
		defs = append(defs, tool.Definition{Module: "other", Name: fmt.Sprintf("other.thing%d", i), Description: "Counts sheep, and forecast errors of sheep."})
	}
	ix := index(t, defs...)
	const text = "rain and temperature forecast of the city and hotels"
	all, err := ix.Search(context.Background(), search.Query{Text: text, Limit: 40, Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	if at := slices.Index(names(all), "rooms.hotels"); at < 0 || at > 4 {
		t.Errorf("hotels are at %d of %v", at, names(all))
	}
	lost := 0
	for i, h := range all {
		if i > 0 && h.Score > all[i-1].Score {
			t.Errorf("hit %d has %v, after %v", i, h.Score, all[i-1].Score)
		}
		sum := 0.
		for _, p := range h.Parts {
			sum += p.Score
			if p.Channel == "repeats" && p.Score < 0 {
				lost++
			}
		}
		if math.Abs(sum-h.Score) > 1e-3 {
			t.Errorf("%s: the parts %v add up to %v, want %v", h.Tool.Name, h.Parts, sum, h.Score)
		}
	}
	if lost == 0 {
		t.Error("no hit has lost anything")
	}
	few, err := ix.Search(context.Background(), search.Query{Text: text, Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	if want := names(all)[:3]; !slices.Equal(names(few), want) {
		t.Errorf("three hits are %v, the first of forty %v", names(few), want)
	}
}

// What is near to what is meant is found, after what is meant.
func TestFindsWhatIsNear(t *testing.T) {
	ix := index(t,
		tool.Definition{Name: "places.restaurants", Module: "places", Description: "Restaurants in the vicinity."},
		tool.Definition{Name: "kitchen.recipes", Module: "kitchen", Description: "Recipes by ingredient."},
		tool.Definition{Name: "files.delete", Module: "files", Description: "Deletes a file."},
		tool.Definition{Name: "clock.now", Module: "clock", Description: "The time in a time zone."})
	for _, text := range []string{"I'm hungry", "j'ai faim", "ich habe Hunger", "お腹が空いた", "我饿了"} {
		got := names(find(t, ix, text))
		slices.Sort(got)
		if want := []string{"kitchen.recipes", "places.restaurants"}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// One word that another language knows as a function word does not make the
// text one of that language: "dal" is a branch in Turkish, and "from the" in Italian.
func TestOneWordTellsNoLanguage(t *testing.T) {
	ix := index(t,
		tool.Definition{Name: "git.create_branch", Module: "git", Description: "Create a new branch."},
		tool.Definition{Name: "clock.now", Module: "clock", Description: "The time in a time zone."})
	if got := names(find(t, ix, "yeni dal oluştur")); len(got) == 0 || got[0] != "git.create_branch" {
		t.Errorf("found %v", got)
	}
}
