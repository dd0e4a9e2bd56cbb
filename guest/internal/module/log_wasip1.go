package module

//go:wasmimport weir log
func hostLog(level int32, line string)

func writeLog(level Level, line string) { hostLog(int32(level), line) }
