package drover

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret holds a text that must not appear in a log, an error or an encoding: every way of printing it gives "***". The
// text is behind a pointer because fmt cannot call the methods of unexported fields: a struct with a Secret in such a
// field prints only an address.
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

// MarshalText hides the text from JSON and similar encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the text from structured logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }
