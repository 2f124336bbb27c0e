package parse

// DeepSeekV4 is DSML within tool_calls.
var DeepSeekV4 = dsmlFormat("deepseek_v4_dsml", "DeepSeek V4", "tool_calls")
