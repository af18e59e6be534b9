package locks

import (
	"math"
	"testing"
)

func TestAFenceKeepsEveryDigitInEachSpelling(t *testing.T) {
	for text, fence := range map[string]Fence{
		"0":                                {},
		"7":                                {0, 7},
		"18446744073709551615":             {0, math.MaxUint64},
		"18446744073709551616":             {1, 0},
		"33132838977483490749893836800001": {1796134800000, 1},
		"340282366920938463463374607431768211455": {math.MaxUint64, math.MaxUint64},
	} {
		parsed, err := Parse(text)
		if err != nil || parsed != fence || fence.String() != text {
			t.Errorf("%s: %v %v %s", text, parsed, err, fence)
		}
		padded, err := Parse(fence.Padded())
		if err != nil || padded != fence || len(fence.Padded()) != 40 {
			t.Errorf("%s: %v %v", fence.Padded(), padded, err)
		}
	}
}

func TestWhatIsNoFenceIsAnError(t *testing.T) {
	for _, text := range []string{"", "-1", "+1", " 1", "1_0", "1e3", "0x1", "１", "abc",
		"340282366920938463463374607431768211456", "00000000000000000000000000000000000000001"} {
		if fence, err := Parse(text); err == nil {
			t.Errorf("%q is %v", text, fence)
		}
	}
	var fence Fence
	if err := fence.Scan(1.5); err == nil {
		t.Error("a REAL has lost its digits")
	}
}

func TestFencesAreOrderedAsNumbers(t *testing.T) {
	ascending := []Fence{{}, {0, 9}, {0, 10}, {1, 0}, {1, 5}, {2, 0}}
	for i, one := range ascending {
		for j, other := range ascending {
			if one.Less(other) != (i < j) || (one.Padded() < other.Padded()) != (i < j) {
				t.Errorf("%v and %v", one, other)
			}
		}
	}
}
