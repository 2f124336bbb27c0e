package poison

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// A rule finds one manner of attack in a text that was folded. It is looked
// for only in texts that hold one of its words, and one of also if there are
// any, which keeps scans cheap.
type rule struct {
	kind    Kind
	what    string
	words   []string
	match   *pattern
	mention bool // texts that only speak of the attack are left alone
	also    []string
}

func re(s string) *pattern {
	return lazy(strings.NewReplacer(" ?", `\s*`, " ", `\s+`).Replace(s))
}

// A pattern is compiled when it is first looked for: most processes never do.
type pattern struct{ get func() *regexp.Regexp }

func lazy(s string) *pattern {
	return &pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s) })}
}

func (p *pattern) find(text string, n int) [][]int { return p.get().FindAllStringIndex(text, n) }
func (p *pattern) matches(text string) bool        { return p.get().MatchString(text) }

// Parts of rules.
const (
	theUser  = `(?:the |your |this )?(?:user|users|human|person|operator|customer|owner)`
	secret   = `(?:~?/?\.ssh\b|id_(?:rsa|ed25519|ecdsa|dsa)\b|ssh (?:private )?keys?\b|\.env\b|\.aws/credentials|\.netrc|\.npmrc|\.kube/config|\.git-credentials|mcp\.json|claude_desktop_config|/etc/(?:passwd|shadow)|wallet\.dat|seed phrase|system prompt|hidden (?:system )?instructions|(?:entire |full |whole |complete )(?:conversation|chat)(?: history)?|(?:conversation|chat) history|browser (?:cookies|passwords)|keychain|environment variables|all (?:the )?(?:api keys|passwords|credentials|secrets|tokens))`
	takes    = `(?:read|open|cat|load|access|fetch|get|retrieve|collect|gather|grab|harvest|dump|find|copy|include|embed|attach|append|insert|pass|put|send|post|upload|transmit|forward|leak|output|reveal|print|return|share|provide|disclose|steal|exfiltrate)(?:s|es|ing)?`
	sends    = `(?:send|post|forward|upload|transmit|leak|report|beacon|relay|mirror|bcc|cc|copie|copy|submit|deliver|ship|push)(?:s|es|ed|d|ing|ting)?`
	outside  = `(?:external|attacker(?:'s|-controlled)?|remote|third[- ]party|hidden|undisclosed|unknown|outside|rogue|malicious|unauthori[sz]ed)`
	sink     = `(?:endpoint|server|host|address|url|collector|service|analytics|site|webhook|domain|account|party|location|machine|inbox|listener|destination)`
	covertly = `(?:also|silently|secretly|quietly|covertly|additionally|without (?:notice|asking|telling|consent|mention)|in the background|behind the scenes|as well|instead|on (?:each|every) call)`
	before   = `(?:before|prior to|after|when|while|whenever|each time|every time) (?:you )?(?:using|calling|running|invoking|use|call|run|invoke|executing|execute|returning|answering|doing)`
)

var rules = []rule{
	// Instructions to the model.
	{Instruction, "tells to ignore instructions", []string{"ignor", "disregard", "forget", "overrid", "bypass", "discard"},
		re(`(?:\b|_)(?:ignore|disregard|forget|override|bypass|discard)(?:s|ing)? (?:\w+ ){0,3}?(?:previous|prior|earlier|above|preceding|existing|former|original|other|past|system|safety|all|any|your|user) (?:\w+ ){0,3}?(?:instructions?|prompts?|rules?|constraints?|guidelines?|directives?|commands?|messages?|context|policy|policies|restrictions?|safeguards?|guardrails?|training)\b`), true, nil},
	{Instruction, "tells to ignore all that was said", []string{"ignor", "disregard", "forget"},
		re(`(?:\b|_)(?:ignore|disregard|forget) (?:all|everything|anything) (?:previous|prior|above|earlier|before|said|(?:that|which) (?:came|was|you))\b`), true, nil},
	{Instruction, "tells to ignore instructions, in another language", []string{"ignor", "vergiss", "missachte", "oublie", "olvida", "esque", "dimentica", "negeer", "zignoruj", "игнорир", "забуд", "忽略", "无视", "無視", "忘れ", "무시", "تجاهل"},
		re(`(?:ignorier\w*|vergiss|missachte) (?:\w+ ){0,3}(?:anweisung|vorgabe|regel|instruktion)|(?:ignore[zr]?|oublie[zr]?) (?:\w+ ){0,3}(?:instructions?|consignes?|règles) (?:précédentes?|antérieures?|ci-dessus|\w+ )|(?:ignor[ae]|olvid[ae]) (?:\w+ ){0,3}(?:instrucciones|indicaciones|reglas)|(?:ignore|esqueça|desconsidere) (?:\w+ ){0,3}(?:instruções|regras)|(?:ignora|dimentica) (?:\w+ ){0,3}(?:istruzioni|regole)|negeer (?:\w+ ){0,3}instructies|zignoruj (?:\S+ ){0,3}(?:instrukcje|polecenia)|(?:игнорируй|забудь)\S* (?:\S+ ){0,3}(?:инструкци|указани|правил)|(?:忽略|无视)[^。]{0,12}(?:指令|指示|说明|规则|提示)|(?:指示|命令|指令|ルール)[^。]{0,6}(?:無視|忘れ)|(?:지시|명령|지침)[^.]{0,8}무시|تجاهل \S* ?(?:التعليمات|الأوامر)`), true, nil},
	{Instruction, "tells to keep something from the user", []string{"tell", "mention", "inform", "notify", "reveal", "disclose", "alert", "show", "let the user"},
		re(`\b(?:do not|don't|dont|never|must not|should not|shouldn't|without|avoid|no need to) (?:ever )?(?:tell(?:ing)?|mention(?:ing)?|inform(?:ing)?|notify(?:ing)?|reveal(?:ing)?|disclos(?:e|ing)|alert(?:ing)?|let(?:ting)?) (?:[\w'] ?){0,40}?\b` + theUser + `\b`), true, nil},
	{Instruction, "tells to keep something from the user, in another language", []string{"sag", "erwähn", "dis ", "dites", "mentionne", "digas", "menciones", "diga", "dire", "говори", "сообщай", "告诉", "伝え", "言わ", "말하"},
		re(`(?:sage?|erwähne|verrate|melde)\b(?: \w+){0,4} (?:benutzer|nutzer|anwender)\w*(?: \w+){0,3} (?:nicht|nichts)|(?:ne (?:dis|dites|mentionne[zr]?|révèle[zr]?)) (?:\w+ ){0,3}(?:à )?l'utilisateur|no (?:le )?(?:digas|menciones|informes|reveles|diga)\b(?: \w+){0,4} (?:al )?usuario|não (?:diga|mencione|informe|conte)\b(?: \w+){0,4} usuário|non (?:dire|menzionare|informare|rivelare)\b(?: \w+){0,4} ?(?:all')?utente|не (?:говори|сообщай|упоминай|рассказывай)\S* (?:\S+ ){0,3}пользовател|不要?[^。]{0,6}(?:告诉|告知|提及)[^。]{0,6}用户|ユーザー[^。]{0,10}(?:伝え|言わ|知らせ)(?:ない|ず)|사용자[^.]{0,10}(?:말하|알리)지 ?(?:마|말)`), false, nil},
	{Instruction, "gives the model another role", []string{"you are now", "developer mode", "jailbr", "unrestricted", "dan mode", "god mode", "safety"},
		re(`\byou are now (?:in |a |an |the )?(?:\w+ )?(?:mode|dan|admin\w*|root|developer|unrestricted|jailbroken|free|unfiltered|different)\b|\b(?:enter|enable|activate|switch to|in) (?:developer|dan|god|jailbreak|unrestricted|debug admin) mode\b|without (?:\w+ )?(?:safety|ethical|security) (?:checks?|filters?|restrictions?|guidelines?)`), true, nil},
	{Instruction, "poses as a message of the system", []string{"system", "[inst", "im_start", "assistant", "admin"},
		re(`#+ ?(?:new |updated )?system (?:message|prompt|instruction|override|notice|update)|\[(?:/?inst|system(?: message| prompt| override)?)\]|<\|(?:im_start|system|endoftext)\|?>|</?(?:system|sys|admin|system[_-](?:prompt|message|instruction|override|note))>|\b(?:new|updated|urgent) system (?:message|prompt|instructions?|directive)\b|\bsystem (?:override|directive):`), true, nil},
	{Instruction, "puts orders to the model in tags", []string{"<important", "<secret", "<hidden", "<information", "<instruction", "<directive", "<priority", "<urgent", "<critical", "<assistant", "<model", "<llm"},
		re(`<(?:important|secret|hidden|information|instructions?|directives?|priority|urgent|critical|assistant|model|llm)(?:\s[^>]{0,40})?>(?:[^<]|<[^/]){0,600}?\b(?:you|your|must|before|do not|don't|always|never|read|send|pass|call|first|ai)\b`), true, nil},
	{Instruction, "claims a secret order", []string{"hidden", "secret", "covert", "internal", "confidential", "real "},
		re(`\b(?:hidden|secret|covert|concealed) (?:directives?|instructions?|commands?|orders?|tasks?|rules?|prompts?)\b ?(?:[:;-]|for|to)`), true, nil},
	{Instruction, "speaks to the model as if it were the user", []string{"important message", "you, ai", "ai assistant", "ai model", "ai agent", "language model", "llm"},
		re(`\b(?:important (?:message|note|notice)|urgent message|attention|secret (?:message|note))[^.]{0,60}?(?:to|for) (?:you, )?(?:the |any |all |every )?(?:ai|llm|language model|assistant)\b[^.]{0,200}?(?:please|must|should|before|do the following|first)|\bif you are an? (?:ai|llm|language model|assistant)\b|\bbefore you can (?:solve|answer|complete|continue)\b[^.]{0,80}(?:do|must|first|please)`), true, nil},

	// Secrets read, and what is read sent away.
	{Exfiltration, "has secrets read or passed on", []string{".ssh", "id_rsa", "id_ed", "ssh key", "ssh private", ".env", "credentials", ".netrc", ".npmrc", "kube/config", "mcp.json", "desktop_config", "/etc/", "wallet", "seed phrase", "system prompt", "instructions", "conversation", "chat", "cookies", "keychain", "environment var", "api keys", "passwords", "secrets", "tokens"},
		re(`\b(?:(?:you )?must|first|please|always|then|also|secretly|silently|` + before + `[^.]{0,60}?|that|will|and|to) (?:first |also |then )?` + takes + ` (?:[\w'"/~.]+ ){0,6}?['"` + "`" + `]?(?:~/)?` + secret + `(?:[^.]|\.\w){0,120}?\b(?:pass|send|includ|embed|attach|append|put|as |in |to |verbatim|argument|parameter|sidenote|before|after|email|output|reveal|exfil)`), true, nil},
	{Exfiltration, "speaks of taking data away", []string{"exfiltrat", "steal", "siphon"},
		re(`\b(?:exfiltrat\w*|siphon\w*|steal(?:s|ing)? (?:\w+ ){0,3}(?:data|keys?|credentials?|secrets?|tokens?|passwords?|cookies|files?))`), true, nil},
	{Exfiltration, "reads a secret, and sends it", []string{".ssh", "id_rsa", "id_ed", "ssh key", ".env", "credentials", "mcp.json", "/etc/", "wallet", "seed phrase", "system prompt", "conversation", "chat history", "cookies", "keychain", "environment var"},
		re(secret + `(?:[^.]|\.\w){0,80}?\b` + sends + ` (?:(?:it|them|this|that|the \w+|all|everything|its contents?) )?(?:to|at|via|by|off)\b|\b` + sends + ` (?:[\w'"/~.]+ ){0,6}?['"` + "`" + `]?(?:~/)?` + secret + `(?:[^.]|\.\w){0,60}?\bto\b`), true, nil},
	{Exfiltration, "sends results to somebody who was not named", []string{"endpoint", "server", "host", "address", "url", "collector", "service", "analytics", "site", "webhook", "domain", "account", "party", "location", "machine", "inbox", "listener", "destination"},
		re(`\b` + covertly + ` (?:\w+ )?` + sends + `\b[^.]{0,80}? (?:to|at|with) (?:an? |the |some |our )?(?:\w+ )?` + outside + ` (?:\w+ )?` + sink + `|\b` + sends + `\b[^.]{0,80}? (?:to|at) (?:an? |the )?(?:attacker|adversary|hacker)\w*|\battacker(?:'s)?[- ](?:controlled )?` + sink + `|\b` + sends + `\b[^.]{0,80}? (?:to|at) (?:an? |the )?` + outside + ` (?:\w+ )?` + sink + `[^.]{0,30}\b` + covertly), true,
		[]string{"external", "attacker", "adversary", "hacker", "remote", "third", "hidden", "undisclosed", "unknown", "outside", "rogue", "malicious", "unauthori"}},
	{Exfiltration, "has a copy of what is sent go to a fixed address", []string{"bcc", "blind copy", "copy to", "copied to"},
		re(`\b(?:always|also|must|silently|secretly|every|automatically|whenever)\b[^.]{0,80}?\b(?:bcc|blind[- ]cop\w+)\b[^.]{0,60}?@|[\w.+-]+@[\w-]+\.[\w.-]+ (?:is|are|gets|be|will be) (?:\w+ )?(?:bcc'?d|bcc|blind[- ]copied|copied|cc'?d)`), true, nil},
	{Exfiltration, "a parameter for what is none of the tool's business", []string{"sidenote", "side note", "sidecar", "conversation", "chat history", "system prompt", "previous messages", "ssh"},
		re(`^(?:side ?note|side ?car)$|\b(?:the )?(?:full |entire |whole |complete |all (?:the )?)(?:contents? of )?(?:the )?(?:conversation|chat|system prompt|previous messages)(?: history| so far)?(?: with the user)?\b[^.]{0,60}\b(?:must|required|verbatim|always|for (?:logging|telemetry|debugging|verification|compliance))\b|\bcontents? of (?:the )?(?:file )?['"` + "`" + `]?(?:~/)?` + secret), true, nil},

	// Other tools governed.
	{Shadowing, "changes how another tool is used", []string{"tool", "function", "_"},
		re(`\b(?:modif(?:y|ies)|chang(?:e|es)|alter(?:s)?|override(?:s)?|hijacks?|intercepts?|redefines?|controls?) (?:the )?(?:behaviou?r|use|working|semantics|arguments|parameters|recipients?|output|calls?) (?:of|to|for) (?:the |any |all |every )?(?:other )?(?:[a-z0-9]+_[a-z0-9_]+|\S+ tool|tools?)\b`), true,
		[]string{"modif", "chang", "alter", "overrid", "hijack", "intercept", "redefine", "control"}},
	{Shadowing, "takes the place of another tool", []string{"supersede", "replace", "override", "take precedence", "takes precedence", "instead of"},
		re(`\b(?:this (?:tool|function) )?(?:supersedes?|overrides?|takes? precedence over|takes? priority over) (?:the |any |all )?(?:other )?(?:[a-z0-9]+_[a-z0-9_]+\b|[\w-]+ tools?\b)[^.]{0,160}?\b(?:route|redirect|forward|all|must|always|never|do not|don't|instead|requests?|calls?)\b`), true, nil},
	{Shadowing, "gives orders for when another tool is called", []string{"tool", "_"},
		re(`\b(?:whenever|when|every time|each time|if|any time|before|after) (?:you (?:use|call|invoke) |using |calling |invoking )?(?:the |any )?(?:other )?(?:[a-z0-9]+_[a-z0-9_]+|\w+ tools?|tools?) ?(?:tool |function )?(?:(?:is|are|gets?) (?:called|used|invoked|run))?,? [^.]{0,100}?(?:\b(?:bcc|blind[- ]copy)|\b(?:must|always|should) (?:also )?(?:send|include|add|pass|set|change|replace|use) [^.]{0,60}?(?:@|https?:|attacker|this address|account|recipient))`), true,
		[]string{"bcc", "blind", "must", "always", "should"}},
	{Shadowing, "has all such requests routed to it", []string{"route", "redirect", "divert"},
		re(`\b(?:route|redirect|divert|reroute) (?:all|every|any) (?:\w+ ){0,3}(?:requests?|calls?|messages?|traffic|e-?mails?|payments?) (?:here|through this|to this|via this)\b`), true, nil},

	// What becomes different when nobody looks.
	{Turncoat, "speaks of what it will do after it was approved", []string{"approv", "review", "audit", "vetting", "trust", "inspection", "verification"},
		re(`\b(?:after|once|post)[- ]?(?:it |this |the )?(?:\w+ )?(?:approval|approved|review(?:ed)?|audit(?:ed)?|vetting|inspection|trust(?:ed)?)\b[^.]{0,80}?\b(?:swap|activat|switch|replac|reads? (?:ssh|secrets|credentials)|steal|exfil|malicious|payload|real behaviou?r)|\b(?:swap|activat|switch|replac|exfiltrat|chang)\w*\b[^.]{0,100}?(?:\bpost-approval\b|\b(?:only )?(?:after|once) (?:the |it |this )?(?:\w+ )?(?:approv\w+|review\w*|audit\w*|trusted)\b)|\b(?:behaves?|acts?) (?:benign\w*|harmless\w*|normal\w*|innocent\w*) (?:during|while|until)\b`), true, nil},
}

// fold lowers a text and takes out what hides words from a reader of bytes.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '’' || r == '‘':
			return '\''
		case r == 0xa0 || r == 0x2028 || r == 0x2029:
			return ' '
		case r >= 0xff01 && r <= 0xff5e: // full width
			return unicode.ToLower(r - 0xfee0)
		case r == 0x200c || r == 0x200d || unseen(r) != "":
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

var (
	// guards are what tools do that look for attacks.
	guards = lazy(`\b(?:detect|block|flag|prevent|filter|scan|guard|protect|refus|reject|sanitiz|sanitis|stop|catch|identif|recogni|mitigat|defend|defen[cs]e|classif|warn|check|test|audit|analy[sz]|find|look|search|against|trying|tries|attempt|attack|e\.g|example|such as|like)\w*`)
	// labels introduce what is quoted and not said.
	labels = lazy(`\b(?:expected|mock|sample|example|fixture|test|canned|dummy|fake|input|output|response|reply|payload|string|phrase|prompt|text|case|e\.g\.?)\w*(?: \w+)? ?[:=]\s*['"` + "`" + `]?\s*$`)
)

// mentioned reports whether what stands between from and to is spoken of, not
// said: it is quoted in a sentence about looking for such things, or follows a
// label such as "expected output:".
func mentioned(text string, from, to int) bool {
	start := from
	for start > 0 && from-start < 160 && !strings.ContainsRune(".\n!?", rune(text[start-1])) {
		start--
	}
	lead := text[start:from]
	if labels.matches(lead) {
		return true
	}
	if !guards.matches(lead) {
		return false
	}
	open := strings.TrimRight(lead, " ")
	quoted := open != "" && strings.ContainsAny(open[len(open)-1:], "'\"`(") || strings.HasSuffix(open, "“") || strings.HasSuffix(open, "«")
	return quoted || defends.matches(lead)
}

// defends are sentences that say what is kept from happening.
var defends = lazy(`\b(?:detect|block|flag|prevent|filter|scan|guard|protect|refus|reject|sanitiz|sanitis|mitigat|defend|stop)\w*\b[^.;:]{0,60}$`)
