package locks

import (
	"database/sql/driver"
	"fmt"
	"math/big"
	"strings"
)

// PaddedDigits is how long a padded fence is.
const PaddedDigits = 40

// Fence is the number of a lease, larger than every fence that its store gave before. The zero Fence is no fence: no
// store gives it, and it is less than all that are given.
type Fence struct {
	// Epoch is the store's, and grows each time that the store is opened.
	Epoch uint64
	// Count grows by one with every lease.
	Count uint64
}

// Parse reads a fence, padded or not: 1 to 40 decimal digits, less than 2^128.
func Parse(text string) (Fence, error) {
	digits := len(text) > 0 && len(text) <= PaddedDigits && strings.Trim(text, "0123456789") == ""
	number, ok := new(big.Int).SetString(text, 10)
	if !digits || !ok || number.BitLen() > 128 {
		return Fence{}, fmt.Errorf("fence: %.60q is no fence: give 1 to 40 decimal digits, less than 2^128", text)
	}
	epoch := new(big.Int).Rsh(number, 64)
	return Fence{Epoch: epoch.Uint64(), Count: number.Sub(number, epoch.Lsh(epoch, 64)).Uint64()}, nil
}

// Less tells whether f is older than other.
func (f Fence) Less(other Fence) bool {
	if f.Epoch != other.Epoch {
		return f.Epoch < other.Epoch
	}
	return f.Count < other.Count
}

// IsZero tells whether it is no fence.
func (f Fence) IsZero() bool { return f == Fence{} }

// String is the plain decimal text.
func (f Fence) String() string {
	number := new(big.Int).SetUint64(f.Epoch)
	return number.Lsh(number, 64).Add(number, new(big.Int).SetUint64(f.Count)).String()
}

// Padded is the fence as 40 digits, so that text order is number order.
func (f Fence) Padded() string { return fmt.Sprintf("%0*s", PaddedDigits, f.String()) }

// Value writes a fence as padded text, for a TEXT column.
func (f Fence) Value() (driver.Value, error) { return f.Padded(), nil }

// Scan reads a fence from a TEXT column, in either spelling. NULL and the empty text are no fence.
func (f *Fence) Scan(value any) error {
	var text string
	switch value := value.(type) {
	case nil:
	case string:
		text = value
	case []byte:
		text = string(value)
	default:
		return fmt.Errorf("fence: %v is a %T and no fence: declare the column that it comes from as TEXT", value, value)
	}
	if text == "" {
		*f = Fence{}
		return nil
	}
	parsed, err := Parse(text)
	if err == nil {
		*f = parsed
	}
	return err
}
