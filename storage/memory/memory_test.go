package memory_test

import (
	"testing"

	"tidemark/storage"
	"tidemark/storage/memory"
	"tidemark/storage/storagetest"
)

func TestEngine(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Engine {
		return memory.New(memory.Options{History: storagetest.Retention, Now: storagetest.Now})
	}, nil)
}
