package locks

import _ "embed" // For the library.

const libraryName = "fence.dylib"

//go:embed fence.dylib
var library []byte
