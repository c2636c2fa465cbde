package storagetest

import (
	"os"
	"testing"

	"aob.dev/writ/storage/jetstream/servertest"
)

func TestMain(m *testing.M) {
	servertest.Main()
	os.Exit(m.Run())
}
