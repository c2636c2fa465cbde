package skills

import (
	"slices"
	"testing"
)

func TestWordsMeet(t *testing.T) {
	for _, pair := range [][2]string{
		{"order", "orders"},
		{"outlet", "Outlets"},
		{"city", "cities"},
		{"box", "boxes"},
		{"branch", "branches"},
		{"class", "classes"},
		{"strong", "strongest"},
		{"orderList", "order lists"},
	} {
		if a, b := words(pair[0]), words(pair[1]); !slices.Equal(a, b) {
			t.Errorf("%q is %q, %q is %q", pair[0], a, pair[1], b)
		}
	}
	if slices.Equal(words("order"), words("border")) {
		t.Error("order meets border")
	}
}
