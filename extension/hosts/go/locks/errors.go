package locks

import "errors"

var (
	// ErrHeld says that the time to wait was over and somebody else still holds the key. The work did not run.
	ErrHeld = errors.New("fence: held by somebody else")
	// ErrLeaseLost says that the lease ended before its holder was done. What it wrote late was refused, if it was
	// written with the fence.
	ErrLeaseLost = errors.New("fence: the lease was lost before its holder was done")
	// ErrPermitLost says that the permit ended before its holder was done.
	ErrPermitLost = errors.New("fence: the permit was lost before its holder was done")
)
