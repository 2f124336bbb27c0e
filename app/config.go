package app

import (
	"encoding/json"
	"regexp"
	"slices"
	"time"

	"github.com/helve-ai/helve/lexicon"
	"github.com/helve-ai/helve/module"
)

// A Config is an app as its file declares it, templates filled in and defaults set.
type Config struct {
	SchemaVersion int      `json:"schema_version,omitempty" default:"2" min:"2" max:"2" jsonschema:"the version of this file's format"`
	App           Info     `json:"app" jsonschema:"what the app is"`
	Runtime       Runtime  `json:"runtime,omitzero" jsonschema:"how it runs"`
	Agents        []Agent  `json:"agents,omitempty" jsonschema:"who works in it"`
	Tools         Tools    `json:"tools,omitzero" jsonschema:"what they may use"`
	Security      Security `json:"security,omitzero" jsonschema:"how it is confined"`
	Dev           Dev      `json:"dev,omitzero" jsonschema:"skills, variables, included files"`

	places  map[string]place // where each value stands in the files, by path
	lexicon *lexicon.Lexicon // nil: as it comes with the program
	words   []string         // the files that extend it, and those of skills
	skills  []module.Skill
	file    string            // from which it was read
	called  map[string]callee // the apps that it may call
	unset   Problems          // see Unset
	unread  Problems          // see Unread
	known   *catalogue        // what names may name; nil: that is not known
}

// Unset returns the variables of the environment that are not set and to which
// one MCP server alone refers: it cannot be used, and all else can.
func (c *Config) Unset() Problems { return slices.Clone(c.unset) }

// Unread returns the skills and folders of skills that are there and could not
// be read: agents do without them, and all else can be used.
func (c *Config) Unread() Problems { return slices.Clone(c.unread) }

// Info says what an app is.
type Info struct {
	ID          string   `json:"app_id" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$" jsonschema:"the app's name in paths, audits and limits"`
	Name        string   `json:"name" minlen:"1" jsonschema:"the app's name for people"`
	Version     string   `json:"version,omitempty" default:"\"1.0\"" jsonschema:"the version of the app"`
	Description string   `json:"description,omitempty" jsonschema:"what it is for"`
	Author      string   `json:"author,omitempty" jsonschema:"who wrote it"`
	Tags        []string `json:"tags,omitempty" jsonschema:"words by which it is found"`
	Icon        string   `json:"icon,omitempty" jsonschema:"a name or an address"`
	Category    string   `json:"category,omitempty" jsonschema:"the field to which it belongs"`
}

var idForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// ValidID reports whether an app may have the id.
func ValidID(id string) bool { return idForm.MatchString(id) }

// Runtime says how an app runs.
type Runtime struct {
	Mode               string          `json:"mode,omitempty" enum:"one_shot,conversation,background" default:"\"conversation\"" jsonschema:"one task, a conversation, or work in the background"`
	EntryAgent         string          `json:"entry_agent,omitempty" jsonschema:"the agent that begins; the first if left out"`
	MaxTurns           int             `json:"max_turns,omitempty" default:"50" min:"1" jsonschema:"how often the model may answer before a run ends"`
	Timeout            int             `json:"timeout,omitempty" default:"300" min:"1" jsonschema:"seconds that a run may take"`
	Budget             RunBudget       `json:"budget,omitzero" jsonschema:"what models may use in one run"`
	Workdir            string          `json:"workdir,omitempty" jsonschema:"the root folder, relative to this file"`
	WorkdirMode        string          `json:"workdir_mode,omitempty" enum:"none,required,fixed,auto" default:"\"auto\"" jsonschema:"whether there is a root folder: none, one that must be given, the one in this file, or whichever there is"`
	DirectModules      []string        `json:"direct_modules,omitempty" jsonschema:"modules whose tools are shown in every mode"`
	ToolInjection      *string         `json:"tool_injection,omitempty" enum:"direct,compact_direct,discovery" jsonschema:"how tools are shown; decided by their size if left out"`
	MaxActiveTools     int             `json:"max_active_tools,omitempty" default:"20" min:"1" max:"500" jsonschema:"how many tools that were found by search stay in full view"`
	Context            Context         `json:"context,omitzero" jsonschema:"how much of the model's context is used"`
	Checkpoints        Checkpoints     `json:"checkpoints,omitzero" jsonschema:"what is saved of files before calls change them"`
	LongCalls          LongCalls       `json:"long_calls,omitzero" jsonschema:"what becomes of calls over MCP that take long"`
	Hooks              json.RawMessage `json:"hooks,omitempty" form:"Hooks" jsonschema:"what happens on events, as the app"`
	Middleware         json.RawMessage `json:"middleware,omitempty" form:"Middleware" jsonschema:"what runs before and after calls: name, {name: settings}, or {name, config, enabled}"`
	Repetition         Repetition      `json:"repetition,omitzero" jsonschema:"when calls that are made again and again are refused"`
	MaxMistakes        int             `json:"max_mistakes,omitempty" default:"3" min:"0" jsonschema:"how many mistakes in a row stop a turn; 0: any number may be made"`
	Watchers           bool            `json:"watchers,omitempty" jsonschema:"offer the watch_* tools"`
	Scheduler          bool            `json:"scheduler,omitempty" jsonschema:"offer schedule, cancel_schedule and remind"`
	Triggers           json.RawMessage `json:"triggers,omitempty" form:"Triggers" jsonschema:"what starts the app"`
	MaxSessionsPerUser int             `json:"max_sessions_per_user,omitempty" min:"1" jsonschema:"how many sessions one user may have at once"`
	Input              json.RawMessage `json:"input,omitempty" form:"Any" jsonschema:"the JSON Schema of what a one-shot app is given"`
	Output             json.RawMessage `json:"output,omitempty" form:"Any" jsonschema:"the JSON Schema of what a one-shot app gives back"`
	PayloadSchema      json.RawMessage `json:"payload_schema,omitempty" form:"Object" jsonschema:"another name of input"`
}

// A RunBudget bounds what models may use in one run, all agents of it together.
// Zero: no bound.
type RunBudget struct {
	Tokens  int     `json:"tokens,omitempty" min:"1" jsonschema:"that they read and say"`
	Dollars float64 `json:"dollars,omitempty" min:"0" jsonschema:"that they cost; every brain that is not on this machine needs a price (brain.config.price)"`
}

// Repetition says when a call is refused because it was made again and again
// (SPEC X8).
type Repetition struct {
	Callers    string  `json:"callers,omitempty" enum:"agents,all,none" default:"\"agents\"" jsonschema:"whose calls are watched, here and for max_mistakes: agents of the app, MCP and HTTP clients as well, or nobody's"`
	Window     int     `json:"window,omitempty" default:"15" min:"2" max:"200" jsonschema:"how many of a session's last calls count"`
	Limit      int     `json:"limit,omitempty" default:"3" min:"2" max:"100" jsonschema:"the so manieth call alike is refused"`
	Similarity float64 `json:"similarity,omitempty" default:"0.5" min:"0" max:"1" jsonschema:"queries whose words overlap more than this (Jaccard) count as the same"`
}

// Context says how much of a model's context is used, and how it is kept.
type Context struct {
	MaxTokens          int     `json:"max_tokens,omitempty" min:"1000" jsonschema:"tokens of the context window; the model's if left out"`
	OutputReserved     int     `json:"output_reserved,omitempty" default:"4096" min:"1" jsonschema:"tokens that are kept free for the answer"`
	Strategy           string  `json:"strategy,omitempty" enum:"summarize,truncate" default:"\"summarize\"" jsonschema:"how a conversation is kept within the window"`
	KeepRecent         int     `json:"keep_recent,omitempty" default:"10" min:"0" jsonschema:"messages that are never summarized"`
	CompressionTrigger float64 `json:"compression_trigger,omitempty" default:"0.75" min:"0.1" max:"1" jsonschema:"the part of the window that is filled when compression begins"`
}

// Checkpoints bound what is saved of files before calls change them, and how
// long it is kept.
type Checkpoints struct {
	MaxFile     int64    `json:"max_file,omitempty" default:"268435456" min:"1" jsonschema:"bytes of a file that is saved; of a call that would change a larger one, over_limit decides"`
	MaxCall     int64    `json:"max_call,omitempty" default:"1073741824" min:"1" jsonschema:"bytes of all files that are saved for one call; of a call that would change more, over_limit decides"`
	OverLimit   string   `json:"over_limit,omitempty" enum:"refuse,run" default:"\"refuse\"" jsonschema:"whether a call whose files are too large to be saved is refused, or runs all the same and cannot be undone"`
	MaxSnapshot int64    `json:"max_snapshot,omitempty" default:"268435456" min:"1" jsonschema:"bytes of files that are saved before a command; the largest beyond it are not, which the result tells"`
	Skip        []string `json:"skip,omitempty" jsonschema:"names of folders that are not saved before a command, in place of node_modules, .venv, __pycache__ and others that can be made anew"`
	MaxTotal    int64    `json:"max_total,omitempty" default:"5368709120" min:"1" jsonschema:"bytes on disk beyond which the oldest checkpoints are dropped, once a day"`
	MaxAge      int      `json:"max_age,omitempty" default:"30" min:"1" max:"36500" jsonschema:"days after which checkpoints are dropped, once a day"`
}

// An Agent is who works in an app.
type Agent struct {
	ID           string          `json:"id" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" jsonschema:"its name, for entry_agent and delegate_to"`
	Role         string          `json:"role,omitempty" enum:"worker,coordinator,specialist" default:"\"worker\"" jsonschema:"what the agent is to the others"`
	Brain        *Brain          `json:"brain" jsonschema:"the model by which it thinks"`
	SystemPrompt string          `json:"system_prompt,omitempty" jsonschema:"what it is told first"`
	PlanFirst    bool            `json:"plan_first,omitempty" jsonschema:"make a plan before acting"`
	Specialty    string          `json:"specialty,omitempty" jsonschema:"what it is good at, for those who delegate"`
	DelegateTo   []string        `json:"delegate_to,omitempty" jsonschema:"ids of the agents to whom it may delegate"`
	Capabilities []string        `json:"capabilities,omitempty" jsonschema:"skills that are loaded from the start"`
	Modules      []ModuleUse     `json:"modules,omitempty" jsonschema:"the modules, or {module: [actions]}, that it may use; all if left out"`
	Profile      []string        `json:"profile,omitempty" jsonschema:"the groups of tools that it may use (read, vault, edit, web, agent, mcp, skill), +name and -name of tools, modules or servers (mcp.SERVER), or patterns; all if left out"`
	Pool         *Pool           `json:"pool,omitempty" jsonschema:"how many of its specialists work at once"`
	Hooks        json.RawMessage `json:"hooks,omitempty" form:"Hooks" jsonschema:"what happens on events, as the app"`
}

// A Pool bounds how many of a coordinator's specialists work at once.
type Pool struct {
	MaxWorkers int `json:"max_workers,omitempty" default:"3" min:"1" max:"64" jsonschema:"how many work at once"`
}

// A Brain is the model by which an agent thinks.
type Brain struct {
	Provider      string          `json:"provider,omitempty" jsonschema:"who offers the model"`
	Model         string          `json:"model,omitempty" jsonschema:"the model's name"`
	ProviderID    string          `json:"provider_id,omitempty" jsonschema:"a provider that is declared elsewhere, as other systems have it: refused, write provider and model"`
	Backend       string          `json:"backend,omitempty" enum:"openai_compat,anthropic,github_copilot,gemini,ollama,script" jsonschema:"the protocol that is spoken"`
	Config        json.RawMessage `json:"config,omitempty" form:"BrainConfig" jsonschema:"its settings"`
	Credential    json.RawMessage `json:"credential,omitempty" form:"Credential" jsonschema:"the name of a credential, or {ref, scope}"`
	Temperature   *float64        `json:"temperature,omitempty" min:"0" max:"2" jsonschema:"how freely it chooses words"`
	MaxTokens     int             `json:"max_tokens,omitempty" min:"1" jsonschema:"tokens of an answer, at most"`
	TopP          *float64        `json:"top_p,omitempty" min:"0" max:"1" jsonschema:"how much of the probability it chooses from"`
	Timeout       int             `json:"timeout,omitempty" min:"1" jsonschema:"seconds that an answer may take"`
	NativeToolUse *bool           `json:"native_tool_use,omitempty" jsonschema:"call tools by the API, or by text; by provider if left out"`
	Context       *Context        `json:"context,omitempty" jsonschema:"in place of the app's"`
	Fallback      *Brain          `json:"fallback,omitempty" jsonschema:"who answers when this brain cannot"`
}

// Tools says what an app may use.
type Tools struct {
	Modules      map[string]ModuleBlock `json:"modules,omitempty" form:"Modules" jsonschema:"the modules that are open; the built-in defaults if left out"`
	Capabilities Capabilities           `json:"capabilities,omitzero" jsonschema:"the policy"`
	MCPServers   map[string]MCPServer   `json:"mcp_servers,omitempty" jsonschema:"upstream MCP servers"`
	Apps         map[string]CalledApp   `json:"apps,omitempty" jsonschema:"one-shot apps that may be called as tools (call_app)"`
	Search       ToolSearch             `json:"search,omitzero" jsonschema:"how they are found"`
	Channels     json.RawMessage        `json:"channels,omitempty" form:"Channels" jsonschema:"ways to be notified"`
}

// A ModuleBlock configures one module.
type ModuleBlock struct {
	Config      json.RawMessage    `json:"config,omitempty" form:"Object" jsonschema:"its settings"`
	Setup       []SetupStep        `json:"setup,omitempty" jsonschema:"actions that are run, as the app, when it opens"`
	Constraints Constraints        `json:"constraints,omitzero" form:"Object" jsonschema:"what agents may call of it"`
	Middleware  json.RawMessage    `json:"middleware,omitempty" form:"Middleware" jsonschema:"what runs before and after calls: name, {name: settings}, or {name, config, enabled}"`
	Overrides   map[string]Costing `json:"overrides,omitempty" jsonschema:"what its actions cost, by action"`
	Credential  json.RawMessage    `json:"credential,omitempty" form:"Credential" jsonschema:"the name of a credential, or {ref, scope}"`
}

// A SetupStep is a call that is made when the app opens.
type SetupStep struct {
	Action string          `json:"action" jsonschema:"an action of the module, or the full name of any tool"`
	Params json.RawMessage `json:"params,omitempty" form:"Object" jsonschema:"its arguments"`
}

// Constraints narrow what agents may call of a module.
type Constraints struct {
	AllowedActions []string                   `json:"allowed_actions,omitempty"`
	BlockedActions []string                   `json:"blocked_actions,omitempty"`
	Own            map[string]json.RawMessage `json:"-"` // what the module itself declares
}

// Capabilities are an app's policy (SPEC A1).
type Capabilities struct {
	DefaultPolicy   string               `json:"default_policy,omitempty" enum:"auto,approve,approve_all,block" default:"\"approve\"" jsonschema:"what becomes of calls on which no rule speaks"`
	MaxRiskLevel    string               `json:"max_risk_level,omitempty" enum:"low,medium,high" default:"\"medium\"" jsonschema:"what is riskier is blocked unless it is granted"`
	Grant           []Rule               `json:"grant,omitempty" jsonschema:"what runs without being asked about"`
	Approve         []Rule               `json:"approve,omitempty" jsonschema:"what is asked about"`
	Deny            []Rule               `json:"deny,omitempty" jsonschema:"what never runs, and is not seen"`
	Hidden          []Rule               `json:"hidden,omitempty" jsonschema:"what agents do not see and cannot call"`
	HiddenModules   []string             `json:"hidden_modules,omitempty" jsonschema:"modules whose tools agents do not see and cannot call"`
	ApprovalTimeout int                  `json:"approval_timeout,omitempty" default:"300" min:"30" max:"3600" jsonschema:"seconds after which a question that nobody answered is a no"`
	ApprovalWait    string               `json:"approval_wait,omitempty" enum:"attached,always" default:"\"attached\"" jsonschema:"whether a question waits although nobody is there to answer it; if not, it is a no at once"`
	RateLimits      map[string]RateLimit `json:"rate_limits,omitempty" jsonschema:"calls per minute, or {calls, window, per}, by module.action, module, glob or *"`
	Budgets         Budgets              `json:"budgets,omitzero" jsonschema:"how many calls may cost money; what is not declared is denied"`
}

// Budgets are how many metered calls there may be (SPEC M2). A class without a
// budget is denied.
type Budgets struct {
	PaidPerDay    *int `json:"paid_cloud_per_day,omitempty" min:"0" jsonschema:"calls of tools of the cost class paid-cloud, by UTC day"`
	PremiumPerDay *int `json:"premium_cloud_per_day,omitempty" min:"0" jsonschema:"calls of tools of the cost class premium-cloud, by UTC day"`
	PerTask       int  `json:"per_task,omitempty" default:"1" min:"1" jsonschema:"metered calls of one session in one UTC day"`
}

// A RateLimit is how many calls there may be in a minute, or {calls, window, per}.
type RateLimit struct {
	Calls  int     `json:"calls" min:"1" max:"1000000" jsonschema:"how many calls"`
	Window float64 `json:"window,omitempty" default:"60" min:"1" max:"2678400" jsonschema:"in how many seconds"`
	Per    string  `json:"per,omitempty" enum:"app,session" default:"\"app\"" jsonschema:"for the whole app, or for each session on its own"`
}

// A Rule is {module, actions, reason}, or the text of a pattern with conditions
// (see guard.ParseRule).
type Rule struct {
	Module  string   `json:"module,omitempty" jsonschema:"a module, such as filesystem or mcp.github"`
	Actions []string `json:"actions,omitempty" jsonschema:"names or globs of its actions; all if left out"`
	Reason  string   `json:"reason,omitempty" jsonschema:"why, for those who read decisions"`
	Pattern string   `json:"pattern,omitempty" jsonschema:"a glob of tool names, with conditions on arguments: shell.run(command: \"git status*\")"`
}

// An MCPServer is an upstream MCP server.
type MCPServer struct {
	Command      string              `json:"command,omitempty" jsonschema:"the program that is the server"`
	Args         []string            `json:"args,omitempty" jsonschema:"its arguments"`
	Env          map[string]string   `json:"env,omitempty" jsonschema:"its environment"`
	Cwd          string              `json:"cwd,omitempty" jsonschema:"the folder in which it runs, relative to the root"`
	URL          string              `json:"url,omitempty" jsonschema:"where the server is"`
	Headers      map[string]string   `json:"headers,omitempty" jsonschema:"what is sent along with each request"`
	OAuth        *OAuth              `json:"oauth,omitempty" jsonschema:"how to sign in, where the server asks for it; false: nobody does"`
	Trusted      bool                `json:"trusted,omitempty" jsonschema:"believe the server's annotations"`
	OnChange     string              `json:"on_change,omitempty" enum:"quarantine,accept" jsonschema:"what becomes of a tool whose definition changes after it was accepted; quarantine if left out, accept for trusted servers"`
	OnFlagged    string              `json:"on_flagged,omitempty" enum:"hold_severe,hold,warn" default:"\"hold_severe\"" jsonschema:"what becomes of a tool whose definition is suspicious"`
	Disabled     bool                `json:"disabled,omitempty" jsonschema:"known, and not connected"`
	Eager        bool                `json:"eager,omitempty" jsonschema:"start it at once and keep it running, not when a tool of it is called"`
	IdleTimeout  int                 `json:"idle_timeout,omitempty" min:"1" jsonschema:"seconds without calls after which it is stopped"`
	Timeout      int                 `json:"timeout,omitempty" min:"1" max:"3600" jsonschema:"seconds that a call may take"`
	StartTimeout int                 `json:"start_timeout,omitempty" min:"1" max:"3600" jsonschema:"seconds that it may take to start and to list its tools, before it is started anew"`
	ListsWait    int                 `json:"lists_wait,omitempty" min:"1" max:"600" jsonschema:"seconds that lists of tools wait for it at a start, while its tools are not known; if left out, 4, or 8 while others go on answering, and 1 if it was waited for in vain before"`
	Asks         string              `json:"asks,omitempty" enum:"all,elicitation,sampling,none" default:"\"all\"" jsonschema:"what it may ask the clients that call it: their users (elicitation), their models (sampling)"`
	Skills       bool                `json:"skills,omitempty" jsonschema:"agents may load the skills of the server: instructions that it wrote"`
	Roots        string              `json:"roots,omitempty" enum:"workspace,client,none" jsonschema:"the folders that it is told to work in, which many servers take in place of those in their arguments: the root, those of the calling client, or none; none if left out"`
	Sessions     bool                `json:"sessions,omitempty" jsonschema:"speak to it in a session, as clients before revision 2026-07-28 do, though it knows that one: for servers some of whose tools ask by requests, which that revision does not have"`
	Only         []string            `json:"only,omitempty" jsonschema:"the tools that it has here, by its own names for them; all if left out"`
	Overrides    map[string]Override `json:"overrides,omitempty" jsonschema:"by tool"`
	Middleware   json.RawMessage     `json:"middleware,omitempty" form:"Middleware" jsonschema:"what runs before and after calls of its tools: name, {name: settings}, or {name, config, enabled}"`
}

// A CalledApp is a one-shot app that may be called as a tool.
type CalledApp struct {
	File        string  `json:"file" minlen:"1" jsonschema:"its app file, in the folder of this one"`
	Description string  `json:"description,omitempty" jsonschema:"what it is for, for those who may call it; its own if left out"`
	May         []Rule  `json:"may,omitempty" jsonschema:"what it may do although its caller may not: without that, it changes nothing that the caller could not change; its own policy decides all the same"`
	MaxTurns    int     `json:"max_turns,omitempty" min:"1" jsonschema:"how often models may answer in one call; its own runtime.max_turns holds, too"`
	Timeout     int     `json:"timeout,omitempty" min:"1" jsonschema:"seconds that a call may take; its own runtime.timeout holds, too"`
	Budget      float64 `json:"budget,omitempty" min:"0" jsonschema:"US dollars that models may cost in one call, where prices are known"`
}

// An OAuth says how to sign in to an upstream server: a map, or true for what
// the server tells, or false.
type OAuth struct {
	Off               bool     `json:"-"`
	ClientID          string   `json:"client_id,omitempty" minlen:"1" jsonschema:"a client that is registered there; Helve registers itself if left out"`
	ClientSecret      string   `json:"client_secret,omitempty" minlen:"1" jsonschema:"its secret, better {{secret.NAME}}; none if left out"`
	ClientMetadataURL string   `json:"client_metadata_url,omitempty" pattern:"^https://[^/]+/" jsonschema:"an https document that describes the client, for authorization servers that take its address for a client id"`
	Issuer            string   `json:"issuer,omitempty" jsonschema:"the authorization server of the client; it is used nowhere else"`
	Scopes            []string `json:"scopes,omitempty" jsonschema:"what to ask for, in place of what the server names"`
	RedirectPort      int      `json:"redirect_port,omitempty" min:"1" max:"65535" jsonschema:"the port of http://127.0.0.1:PORT/callback, to which the browser comes back; a free one if left out"`
	PrivateKey        string   `json:"private_key,omitempty" minlen:"1" jsonschema:"in place of client_secret: the key by which the client proves itself, in PEM, best {{secret.NAME}}"`
	KeyID             string   `json:"key_id,omitempty" minlen:"1" jsonschema:"the name of that key at the authorization server"`
	Grant             string   `json:"grant,omitempty" enum:"authorization_code,client_credentials,jwt_bearer,enterprise_managed" default:"\"authorization_code\"" jsonschema:"who signs in: a person, or without helve login the client itself by its secret or key, or the workload by assertion_file; or a person once for all servers, at the identity provider"`
	AssertionFile     string   `json:"assertion_file,omitempty" minlen:"1" jsonschema:"a file with the token that the platform gives to the workload, read whenever a token is needed (grant: jwt_bearer); relative to the root"`

	Identity *Identity `json:"identity,omitempty" jsonschema:"the identity provider that vouches for the person (grant: enterprise_managed)"`
}

// An Identity is a client of an identity provider.
type Identity struct {
	Issuer       string `json:"issuer" jsonschema:"the provider's issuer, an https address"`
	ClientID     string `json:"client_id" minlen:"1" jsonschema:"the client that is registered there"`
	ClientSecret string `json:"client_secret,omitempty" minlen:"1" jsonschema:"its secret, better {{secret.NAME}}; none if left out"`
	TokenFile    string `json:"token_file,omitempty" minlen:"1" jsonschema:"a file with the person's ID token, which another program writes; helve login gets one if left out"`
}

// An Override is an operator's word on one upstream tool.
type Override struct {
	Effect string            `json:"effect,omitempty" enum:"reads,writes,destroys" jsonschema:"what it does"`
	Risk   string            `json:"risk,omitempty" enum:"low,medium,high" jsonschema:"how much harm it may do"`
	Roles  map[string]string `json:"roles,omitempty" jsonschema:"argument roles, by property"`
	Hidden bool              `json:"hidden,omitempty" jsonschema:"agents do not see it and cannot call it"`

	CostClass string `json:"cost_class,omitempty" enum:"free-local,paid-cloud,premium-cloud" jsonschema:"who pays for a call"`
	Price     string `json:"price,omitempty" jsonschema:"what a call costs, such as 0.05 USD; for reports"`
}

// A Costing is an operator's word on what a tool of a module costs.
type Costing struct {
	CostClass string `json:"cost_class,omitempty" enum:"free-local,paid-cloud,premium-cloud" jsonschema:"who pays for a call"`
	Price     string `json:"price,omitempty" jsonschema:"what a call costs, such as 0.05 USD; for reports"`
}

// Security says how an app is confined.
type Security struct {
	Sandbox     string   `json:"sandbox,omitempty" enum:"require,prefer,off" default:"\"require\"" jsonschema:"run programs confined or not at all, confined where possible, or unconfined"`
	Taint       string   `json:"taint,omitempty" enum:"off,warn,enforce" default:"\"warn\"" jsonschema:"what follows from content that came from outside"`
	Credentials string   `json:"credentials,omitempty" enum:"auto,keyring,file" default:"\"auto\"" jsonschema:"where the key to secrets and logins is: in the system's keyring, in a file of the user, or where there is one"`
	AllowHosts  []string `json:"allow_hosts,omitempty" jsonschema:"host:port of private services that tools may reach all the same"`

	ApproveByClient *bool `json:"approve_by_client,omitempty" jsonschema:"whether the person at the MCP client that made a call may approve it there; they may if it is left out"`
}

// Dev holds skills, variables and included files.
type Dev struct {
	Skills       json.RawMessage   `json:"skills,omitempty" form:"Skills" jsonschema:"folders of instructions: {command, description, path}"`
	SkillFolders []string          `json:"skill_folders,omitempty" jsonschema:"folders in which every folder with a SKILL.md is a skill, relative to this file"`
	ServeSkills  []string          `json:"serve_skills,omitempty" jsonschema:"skills that MCP clients may read, with all files of their folders, by name; * for all; none if left out"`
	Variables    map[string]string `json:"variables,omitempty" jsonschema:"for templates: {{name}}"`
	Include      []string          `json:"include,omitempty" jsonschema:"further files of this app, relative to this one: lists append, maps merge"`
}

// A ModuleUse names a module that an agent may use, whole or by actions.
type ModuleUse struct {
	Module  string
	Actions []string // nil: all
}

// timeoutOr returns seconds as a duration, or other if there are none.
func timeoutOr(seconds int, other time.Duration) time.Duration {
	if seconds == 0 {
		return other
	}
	return time.Duration(seconds) * time.Second
}
