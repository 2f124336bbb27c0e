package app

import (
	"encoding/json"
	"time"
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

	places map[string]place // where each value stands in the files, by path
}

// Info says what an app is.
type Info struct {
	ID          string   `json:"app_id" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$" jsonschema:"the app's name in paths, audits and limits"`
	Name        string   `json:"name" minlen:"1" jsonschema:"the app's name for people"`
	Version     string   `json:"version,omitempty" default:"\"1.0\""`
	Description string   `json:"description,omitempty"`
	Author      string   `json:"author,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Icon        string   `json:"icon,omitempty"`
	Category    string   `json:"category,omitempty"`
}

// Runtime says how an app runs.
type Runtime struct {
	Mode               string          `json:"mode,omitempty" enum:"one_shot,conversation,background" default:"\"conversation\""`
	EntryAgent         string          `json:"entry_agent,omitempty" jsonschema:"the agent that begins; the first if left out"`
	MaxTurns           int             `json:"max_turns,omitempty" default:"50" min:"1"`
	Timeout            int             `json:"timeout,omitempty" default:"300" min:"1" jsonschema:"seconds that a run may take"`
	Workdir            string          `json:"workdir,omitempty" jsonschema:"the root folder, relative to this file"`
	WorkdirMode        string          `json:"workdir_mode,omitempty" enum:"none,required,fixed,auto" default:"\"auto\""`
	DirectModules      []string        `json:"direct_modules,omitempty" jsonschema:"modules whose tools are shown in every mode"`
	ToolInjection      *string         `json:"tool_injection,omitempty" enum:"direct,compact_direct,discovery" jsonschema:"how tools are shown; decided by their size if left out"`
	MaxActiveTools     int             `json:"max_active_tools,omitempty" default:"20" min:"1" max:"500"`
	Context            Context         `json:"context,omitzero"`
	Hooks              json.RawMessage `json:"hooks,omitempty" form:"Hooks"`
	Middleware         json.RawMessage `json:"middleware,omitempty" form:"Middleware"`
	Watchers           bool            `json:"watchers,omitempty"`
	Scheduler          bool            `json:"scheduler,omitempty"`
	Triggers           json.RawMessage `json:"triggers,omitempty" form:"Triggers"`
	MaxSessionsPerUser int             `json:"max_sessions_per_user,omitempty" min:"1"`
	Input              json.RawMessage `json:"input,omitempty" form:"Any"`
	Output             json.RawMessage `json:"output,omitempty" form:"Any"`
	PayloadSchema      json.RawMessage `json:"payload_schema,omitempty" form:"Object"`
}

// Context says how much of a model's context is used, and how it is kept.
type Context struct {
	MaxTokens          int     `json:"max_tokens,omitempty" min:"1000" jsonschema:"tokens of the context window; the model's if left out"`
	OutputReserved     int     `json:"output_reserved,omitempty" default:"4096" min:"1"`
	Strategy           string  `json:"strategy,omitempty" enum:"summarize,truncate" default:"\"summarize\""`
	KeepRecent         int     `json:"keep_recent,omitempty" default:"10" min:"0"`
	CompressionTrigger float64 `json:"compression_trigger,omitempty" default:"0.75" min:"0.1" max:"1"`
}

// An Agent is who works in an app.
type Agent struct {
	ID           string          `json:"id" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"`
	Role         string          `json:"role,omitempty" enum:"worker,coordinator,specialist" default:"\"worker\""`
	Brain        *Brain          `json:"brain"`
	SystemPrompt string          `json:"system_prompt,omitempty"`
	PlanFirst    bool            `json:"plan_first,omitempty"`
	Specialty    string          `json:"specialty,omitempty"`
	DelegateTo   []string        `json:"delegate_to,omitempty" jsonschema:"ids of the agents to whom it may delegate"`
	Capabilities []string        `json:"capabilities,omitempty" jsonschema:"skills that are loaded from the start"`
	Modules      []ModuleUse     `json:"modules,omitempty" jsonschema:"the modules, or {module: [actions]}, that it may use; all if left out"`
	Profile      []string        `json:"profile,omitempty" jsonschema:"the groups of tools that it may use (read, vault, edit, web, agent, mcp, skill), +tool and -tool; all if left out"`
	Pool         *Pool           `json:"pool,omitempty"`
	Hooks        json.RawMessage `json:"hooks,omitempty" form:"Hooks"`
}

// A Pool bounds how many of a coordinator's specialists work at once.
type Pool struct {
	MaxWorkers int `json:"max_workers,omitempty" default:"3" min:"1" max:"64"`
}

// A Brain is the model by which an agent thinks.
type Brain struct {
	Provider      string          `json:"provider,omitempty"`
	Model         string          `json:"model,omitempty"`
	ProviderID    string          `json:"provider_id,omitempty"`
	Backend       string          `json:"backend,omitempty" enum:"openai_compat,anthropic,github_copilot,gemini,ollama,script"`
	Config        json.RawMessage `json:"config,omitempty" form:"BrainConfig"`
	Credential    json.RawMessage `json:"credential,omitempty" form:"Credential"`
	Temperature   *float64        `json:"temperature,omitempty" min:"0" max:"2"`
	MaxTokens     int             `json:"max_tokens,omitempty" min:"1"`
	TopP          *float64        `json:"top_p,omitempty" min:"0" max:"1"`
	Timeout       int             `json:"timeout,omitempty" min:"1"`
	NativeToolUse *bool           `json:"native_tool_use,omitempty"`
	Context       *Context        `json:"context,omitempty"`
	Fallback      *Brain          `json:"fallback,omitempty"`
}

// Tools says what an app may use.
type Tools struct {
	Modules      map[string]ModuleBlock `json:"modules,omitempty" form:"Modules" jsonschema:"the modules that are open; the built-in defaults if left out"`
	Capabilities Capabilities           `json:"capabilities,omitzero" jsonschema:"the policy"`
	MCPServers   map[string]MCPServer   `json:"mcp_servers,omitempty" jsonschema:"upstream MCP servers"`
	Channels     json.RawMessage        `json:"channels,omitempty" form:"Channels"`
}

// A ModuleBlock configures one module.
type ModuleBlock struct {
	Config      json.RawMessage `json:"config,omitempty" form:"Object"`
	Setup       []SetupStep     `json:"setup,omitempty" jsonschema:"actions that are run, as the app, when it opens"`
	Constraints Constraints     `json:"constraints,omitzero" form:"Object"`
	Middleware  json.RawMessage `json:"middleware,omitempty" form:"Middleware"`
	Credential  json.RawMessage `json:"credential,omitempty" form:"Credential"`
}

// A SetupStep is a call that is made when the app opens.
type SetupStep struct {
	Action string          `json:"action"`
	Params json.RawMessage `json:"params,omitempty" form:"Object"`
}

// Constraints narrow what agents may call of a module.
type Constraints struct {
	AllowedActions []string                   `json:"allowed_actions,omitempty"`
	BlockedActions []string                   `json:"blocked_actions,omitempty"`
	Own            map[string]json.RawMessage `json:"-"` // what the module itself declares
}

// Capabilities are an app's policy (SPEC A1).
type Capabilities struct {
	DefaultPolicy   string         `json:"default_policy,omitempty" enum:"auto,approve,approve_all,block" default:"\"approve\""`
	MaxRiskLevel    string         `json:"max_risk_level,omitempty" enum:"low,medium,high" default:"\"medium\""`
	Grant           []Rule         `json:"grant,omitempty" jsonschema:"what runs without being asked about"`
	Approve         []Rule         `json:"approve,omitempty" jsonschema:"what is asked about"`
	Deny            []Rule         `json:"deny,omitempty" jsonschema:"what never runs, and is not seen"`
	Hidden          []Rule         `json:"hidden,omitempty" jsonschema:"what agents do not see and cannot call"`
	HiddenModules   []string       `json:"hidden_modules,omitempty"`
	ApprovalTimeout int            `json:"approval_timeout,omitempty" default:"300" min:"30" max:"3600"`
	RateLimits      map[string]int `json:"rate_limits,omitempty"`
}

// A Rule is {module, actions, reason}, or the text of a pattern with conditions
// (see guard.ParseRule).
type Rule struct {
	Module  string   `json:"module,omitempty"`
	Actions []string `json:"actions,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Pattern string   `json:"pattern,omitempty"`
}

// An MCPServer is an upstream MCP server.
type MCPServer struct {
	Command     string              `json:"command,omitempty"`
	Args        []string            `json:"args,omitempty"`
	Env         map[string]string   `json:"env,omitempty"`
	Cwd         string              `json:"cwd,omitempty"`
	URL         string              `json:"url,omitempty"`
	Headers     map[string]string   `json:"headers,omitempty"`
	OAuth       json.RawMessage     `json:"oauth,omitempty" form:"OAuth"`
	Trusted     bool                `json:"trusted,omitempty" jsonschema:"believe the server's annotations"`
	Disabled    bool                `json:"disabled,omitempty"`
	IdleTimeout int                 `json:"idle_timeout,omitempty" min:"1"`
	Timeout     int                 `json:"timeout,omitempty" min:"1" max:"3600" jsonschema:"seconds that a call may take"`
	Overrides   map[string]Override `json:"overrides,omitempty" jsonschema:"by tool"`
}

// An Override is an operator's word on one upstream tool.
type Override struct {
	Effect string            `json:"effect,omitempty" enum:"reads,writes,destroys"`
	Risk   string            `json:"risk,omitempty" enum:"low,medium,high"`
	Roles  map[string]string `json:"roles,omitempty" jsonschema:"argument roles, by property"`
	Hidden bool              `json:"hidden,omitempty"`
}

// Security says how an app is confined.
type Security struct {
	Sandbox     string          `json:"sandbox,omitempty" enum:"require,prefer,off" default:"\"require\""`
	Taint       string          `json:"taint,omitempty" enum:"off,warn,enforce" default:"\"warn\""`
	Credentials json.RawMessage `json:"credentials,omitempty" form:"Object"`
	AllowHosts  []string        `json:"allow_hosts,omitempty" jsonschema:"host:port of private services that tools may reach all the same"`
}

// Dev holds skills, variables and included files.
type Dev struct {
	Skills    json.RawMessage   `json:"skills,omitempty" form:"Skills"`
	Variables map[string]string `json:"variables,omitempty" jsonschema:"for templates: {{name}}"`
	Include   []string          `json:"include,omitempty"`
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
