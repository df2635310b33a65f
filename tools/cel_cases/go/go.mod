module oraculo/tools/cel_cases

go 1.23.0

require cel.dev/expr v0.25.3
