package storagetest

import (
	"os"
	"testing"

	"aob.dev/writ/internal/testing/natstest"
)

func TestMain(m *testing.M) {
	natstest.Main()
	os.Exit(m.Run())
}
