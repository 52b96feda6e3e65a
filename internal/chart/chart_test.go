package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func aPanel(title string, values ...float64) Panel {
	var l Line
	l.Name = "drover"
	for i, v := range values {
		l.Points = append(l.Points, Point{time.Unix(int64(i)*3600, 0), v})
	}
	other := l
	other.Name = "<one per job>"
	return Panel{Title: title, Lines: []Line{l, other}, Steps: true}
}

func TestSVG(t *testing.T) {
	t.Run("is well-formed, with the title of every panel and one legend", func(t *testing.T) {
		var out bytes.Buffer
		if err := SVG(&out, []Panel{aPanel("instances", 1, 2, 1), aPanel("queue", 0, 0, 0)}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{">instances<", ">queue<", ">drover<"} {
			if n := strings.Count(out.String(), want); n != 1 {
				t.Errorf("%s is there %d times", want, n)
			}
		}
		if !strings.Contains(out.String(), `aria-label="instances, queue over time"`) || strings.Contains(out.String(), `<svg width=`) {
			t.Errorf("it has no title, or is as wide whatever room there is: %.300s", out.String())
		}
		d := xml.NewDecoder(&out)
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("refuses to draw nothing", func(t *testing.T) {
		if err := SVG(io.Discard, nil); err == nil {
			t.Error("it did not")
		}
	})
}
