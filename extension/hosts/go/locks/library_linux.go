package locks

import _ "embed" // For the library.

const libraryName = "fence.so"

//go:embed fence.so
var library []byte
