package drover

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret holds a text that must reach neither a log, nor an error, nor an encoding: every way of printing it gives
// "***". The text is behind a pointer, so that even a struct that holds a Secret in an unexported field, whose methods
// fmt cannot call, prints no more than an address.
type Secret struct{ text *string }

const hidden = "***"

// NewSecret wraps text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text, empty for the zero Secret. Call it only where the secret is used.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// String hides the text.
func (s Secret) String() string { return hidden }

// Format hides the text from every verb of package fmt.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, hidden) }

// MarshalText hides the text from JSON and its like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the text from structured logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }
