package drivertest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"drover"
)

// Classifies tests what all drivers' classification of errors has in common, whatever their cloud answers.
func Classifies(t *testing.T, classify func(doing string, err error) error) {
	t.Run("an error without details is transient", func(t *testing.T) {
		if err := classify("do", errors.New("connection reset by peer")); drover.KindOf(err) != drover.KindTransient || err.Error() != "do: connection reset by peer" {
			t.Error(err)
		}
	})
	t.Run("a classified error keeps its class", func(t *testing.T) {
		if err := classify("do", drover.Errorf(drover.KindQuota, "x")); drover.KindOf(err) != drover.KindQuota || err.Error() != "do: x" {
			t.Error(err)
		}
	})
	t.Run("a context error stays a context error", func(t *testing.T) {
		for _, ended := range []error{context.Canceled, context.DeadlineExceeded} {
			if err := classify("do", fmt.Errorf("asked: %w", ended)); !errors.Is(err, ended) {
				t.Error(err)
			}
		}
	})
	t.Run("nil stays nil", func(t *testing.T) {
		if classify("do", nil) != nil {
			t.Error("nil became an error")
		}
	})
}
