package parse

import (
	"strings"

	"github.com/helve-ai/helve/tool"
)

// Labelled is a line that names the tool and one with its arguments as JSON.
var Labelled = &Format{
	Name:    "labelled",
	Doc:     "\"Action: NAME\" and \"Action Input: {…}\" on lines of their own, with labels in many languages.",
	Models:  "models prompted in the manner of ReAct",
	grammar: grammar{openers: join(labelOpeners(true), thinkTags), implied: closesThink},
	render: each(func(c tool.Call) string {
		return "Action: " + c.Name + "\nAction Input: " + string(c.Args)
	}, "\n"),
	result: func(_, _, content string) string { return "Observation: " + content },
}

// nameLabels announce a tool, argLabels its arguments. Both are compared
// without regard to case.
var (
	nameLabels = []string{
		"Action", "Tool", "Tool Name", "Tool Call", "Function", "Function Call", "Call",
		"Outil", "Fonction", "Appel",
		"Werkzeug", "Aktion", "Funktion", "Aufruf",
		"Herramienta", "Acción", "Función",
		"Strumento", "Azione", "Funzione",
		"Ferramenta", "Ação", "Função",
		"Hulpmiddel", "Actie", "Functie", "Gereedschap",
		"Narzędzie", "Akcja", "Funkcja",
		"Инструмент", "Действие", "Функция",
		"Araç", "Eylem", "İşlev",
		"أداة", "الأداة", "الإجراء",
		"Alat", "Aksi", "Fungsi",
		"ツール", "アクション", "関数",
		"도구", "동작", "함수",
		"工具", "动作", "行动", "操作", "函数", "调用",
		"Værktøj", "Handling",
	}
	argLabels = []string{
		"Action Input", "Tool Input", "Arguments", "Args", "Parameters", "Params", "Input", "Function Arguments", "Tool Arguments",
		"Entrée de l'action", "Paramètres", "Entrée",
		"Aktionseingabe", "Argumente", "Parameter", "Eingabe",
		"Entrada de la acción", "Argumentos", "Parámetros", "Entrada",
		"Argomenti", "Parametri",
		"Parâmetros", "Entrada da ação",
		"Argumenten", "Invoer", "Actie-invoer",
		"Argumenty", "Parametry", "Wejście",
		"Аргументы", "Параметры", "Ввод", "Входные данные",
		"Argümanlar", "Parametreler", "Girdi",
		"المعاملات", "المدخلات", "الوسائط",
		"Argumen", "Masukan",
		"引数", "パラメータ", "パラメーター", "入力",
		"인수", "인자", "매개변수", "입력",
		"参数", "输入", "动作输入", "行动输入", "工具输入",
		"Argumenter", "Parametre", "Inddata",
	}
)

// labelOpeners returns an opener for each label, as it may be written. In
// lower case they are as common in configuration files.
func labelOpeners(lower bool) (out []opener) {
	seen := map[string]bool{}
	for _, label := range nameLabels {
		forms := []string{label, strings.ToUpper(label)}
		if lower {
			forms = append(forms, strings.ToLower(label))
		}
		for _, form := range forms {
			for _, mark := range []string{"", "**"} {
				if tag := mark + form; !seen[tag] {
					seen[tag] = true
					out = append(out, opener{tag: tag, at: lineStart, read: readLabelled})
				}
			}
		}
	}
	return out
}

// readLabelled reads two labelled lines.
func readLabelled(e *env) verdict {
	line, rest, ended := strings.Cut(e.s[len(e.opener.tag):], "\n")
	name, ok := afterColon(line)
	if !ok && (ended || e.eof || len(line) > 4) {
		return not
	}
	if !ended {
		if e.eof || len(line) > 300 {
			return not
		}
		return more
	}
	name = strings.Trim(strings.TrimSpace(name), "`*\"' ")
	if !nameLike(name) {
		return not
	}
	start := len(e.s) - len(rest)
	at := e.skip(start)
	open := strings.IndexByte(e.s[at:], '{')
	nl := strings.IndexByte(e.s[at:], '\n')
	switch {
	case open < 0 && nl < 0 && !e.eof && len(e.s)-at < 200:
		return more
	case open < 0:
		if nl >= 0 && !e.eof && len(e.s)-at < 200 && isArgLabel(e.s[at:at+nl]) {
			return more
		}
		return not
	case !isArgLabel(e.s[at : at+open]):
		return not
	}
	if _, ok := e.offered(name); !ok {
		e.note("%s", e.tools.unknown(name))
		return not
	}
	end := e.balanced(at + open)
	if end < 0 {
		if e.eof {
			e.wasCut("")
			e.n = len(e.s)
			return not
		}
		return more
	}
	n := end
	if strings.Contains(e.s[at:at+open], "```") {
		var wait bool
		if n, wait = e.close(end, "```"); wait {
			e.rewind(end)
			return more
		}
	}
	e.jsonCall(textCall(name, e.s[at+open:end], e.s[:n]))
	return e.done(n)
}

// afterColon returns what follows the colon with which a label ends.
func afterColon(s string) (string, bool) {
	s = strings.TrimLeft(s, " *\u00a0")
	for _, colon := range []string{":", "："} {
		if rest, ok := strings.CutPrefix(s, colon); ok {
			return rest, true
		}
	}
	return "", false
}

// isArgLabel reports whether s is a label of arguments, perhaps with the
// beginning of a fenced block.
func isArgLabel(s string) bool {
	s = strings.TrimSpace(s)
	s, _, _ = strings.Cut(s, "```")
	s = strings.Trim(strings.TrimSpace(s), "*: ：\u00a0")
	for _, l := range argLabels {
		if strings.EqualFold(s, l) {
			return true
		}
	}
	return false
}
