package parse

// YAgentMulti is any of the tagged formats, mixed.
var YAgentMulti = &Format{
	Name:    "y_agent_multi",
	Doc:     "Any of the formats with tags, mixed in one message.",
	Models:  "models that do not keep to one format",
	grammar: grammar{openers: join(tagOpeners(), []opener{functools}, thinkTags, afterCall(closingTags...)), implied: closesThink},
	render:  Hermes.render,
	result:  toolResponse,
}
