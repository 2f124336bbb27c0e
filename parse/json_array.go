package parse

// JSONArray is a bare JSON array of calls.
var JSONArray = &Format{
	Name:    "json_array",
	Doc:     "A JSON array of calls with nothing around it.",
	Models:  "models told to answer in JSON",
	grammar: grammar{openers: join([]opener{bareArray, bareObject}, thinkTags), implied: closesThink},
	render:  listJSON("", "parameters", ""),
}
