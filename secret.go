package drover

import "log/slog"

// Secret holds a text that must reach neither a log, nor an error, nor an encoding: every way of printing it gives "***".
type Secret struct{ text string }

// NewSecret wraps text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text. Call it only where the secret is used.
func (s Secret) Reveal() string { return s.text }

// String hides the text.
func (s Secret) String() string { return "***" }

// GoString hides the text from %#v.
func (s Secret) GoString() string { return "***" }

// MarshalText hides the text from JSON and its like.
func (s Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// LogValue hides the text from structured logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue("***") }
