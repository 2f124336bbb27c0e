package parse

// DeepSeekV32 is DSML within function_calls.
var DeepSeekV32 = dsmlFormat("deepseek_v32_dsml", "DeepSeek V3.2", "function_calls")
