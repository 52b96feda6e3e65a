// Package chart draws how values change over time, as SVG that is readable on light and dark pages.
//
// The model: panels stand below one another over one time axis; each shows the same subjects, one line per subject, in
// the same colors.
package chart

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io"
	"strings"
	"time"
)

// Chart is panels under one title.
type Chart struct {
	Title  string
	Panels []Panel
}

// Panel is one diagram.
type Panel struct {
	Title string
	Unit  string // of its values
	Lines []Line
	Steps bool // a value holds until the next point; otherwise points are joined
}

// Line is one subject of a panel.
type Line struct {
	Name   string
	Points []Point
}

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// The layout, in pixels of a chart at its full width. It shrinks to fit a narrower page.
const (
	width        = 900
	left, right  = 70, 30 // beside the diagrams
	header       = 40
	legendHeight = 24
	panelHeight  = 230
	above, below = 36, 30 // of each diagram, within its panel
	footer       = 20
	letter       = 7 // approximate width of a letter
)

// SVG draws a chart, with times in UTC. Each panel has at least one line.
func (c Chart) SVG(w io.Writer) error {
	begin, end, any := c.span()
	if !any {
		return errors.New("there is nothing to draw")
	}
	top := header
	names := c.Panels[0].Lines
	if len(names) > 1 {
		top += legendHeight
	}
	height := top + panelHeight*len(c.Panels) + footer
	out := &drawing{begin: begin, end: end}
	out.writef("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
	out.writef("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" style=\"width:100%%;max-width:%[1]dpx;height:auto\" role=\"img\" aria-label=\"%[3]s\"", width, height, html.EscapeString(c.label()))
	out.writef(" font-family=\"system-ui,sans-serif\" font-size=\"12\">\n<title>%s</title>\n%s", html.EscapeString(c.label()), stylesheet())
	out.writef("<rect class=\"paper\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n", width, height, paper.light)
	out.text(left, 26, "", c.Title, "font-size=\"16\" font-weight=\"bold\"")
	if len(names) > 1 {
		out.legend(names)
	}
	for i, p := range c.Panels {
		out.panel(p, top+panelHeight*i)
	}
	out.text(width-right, height-8, "end", "UTC", "")
	out.writef("</svg>\n")
	_, err := w.Write(out.Bytes())
	return err
}

// label returns the text for screen readers.
func (c Chart) label() string {
	var titles []string
	for _, p := range c.Panels {
		titles = append(titles, p.heading())
	}
	return c.Title + ": " + strings.Join(titles, ", ") + " over time"
}

// heading returns a panel's title with its unit, unless that is the title.
func (p Panel) heading() string {
	if p.Unit == "" || strings.EqualFold(p.Unit, p.Title) {
		return p.Title
	}
	return p.Title + " (" + p.Unit + ")"
}

// span returns the times of the first and the last of all points.
func (c Chart) span() (begin, end time.Time, any bool) {
	for _, p := range c.Panels {
		for _, l := range p.Lines {
			for _, at := range l.Points {
				if !any || at.At.Before(begin) {
					begin = at.At
				}
				if !any || at.At.After(end) {
					end = at.At
				}
				any = true
			}
		}
	}
	if !end.After(begin) {
		end = begin.Add(time.Second)
	}
	return begin, end, any
}

// drawing is a chart while it is being written.
type drawing struct {
	bytes.Buffer
	begin, end time.Time
}

func (d *drawing) writef(format string, args ...any) { fmt.Fprintf(d, format, args...) }

func (d *drawing) text(x, y int, anchor, text, more string) {
	if anchor != "" {
		more += " text-anchor=\"" + anchor + "\""
	}
	d.writef("<text class=\"ink\" x=\"%d\" y=\"%d\" fill=\"%s\" %s>%s</text>\n", x, y, ink.light, strings.TrimSpace(more), html.EscapeString(text))
}

func (d *drawing) rule(x1, y1, x2, y2 int) {
	d.writef("<path class=\"grid\" d=\"M%d %dL%d %d\" stroke=\"%s\"/>\n", x1, y1, x2, y2, grid.light)
}

// legend names the lines side by side above all panels.
func (d *drawing) legend(lines []Line) {
	const stroke, gap = 24, 6
	x, y := left, header+legendHeight/2
	for i, l := range lines {
		d.writef("<path class=\"line%d\" d=\"M%d %dh%d\" stroke=\"%s\" stroke-width=\"3\"/>\n", i%len(palette), x, y, stroke, palette[i%len(palette)].light)
		d.text(x+stroke+gap, y+4, "", l.Name, "")
		x += stroke + 4*gap + letter*len(l.Name)
	}
}

// panel draws a panel's diagram below top.
func (d *drawing) panel(p Panel, top int) {
	roof, floor := top+above, top+panelHeight-below
	d.text(left, top+22, "", p.heading(), "font-weight=\"bold\"")
	scale := scaleOf(p.largest())
	for _, v := range scale.values() {
		y := d.y(v, scale, roof, floor)
		d.rule(left, int(y), width-right, int(y))
		d.text(left-8, int(y)+4, "end", scale.label(v), "")
	}
	for _, at := range times(d.begin, d.end) {
		x := int(d.x(at.Time))
		d.rule(x, roof, x, floor)
		d.text(x, floor+18, "middle", at.label, "")
	}
	for i := len(p.Lines) - 1; i >= 0; i-- { // the first lies above the others
		n := i % len(palette)
		d.writef("<path class=\"line%d\" d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" stroke-linejoin=\"round\"/>\n", n, d.path(p, p.Lines[i], scale, roof, floor), palette[n].light)
	}
}

func (d *drawing) x(at time.Time) float64 {
	return left + (width-left-right)*at.Sub(d.begin).Seconds()/d.end.Sub(d.begin).Seconds()
}

func (d *drawing) y(value float64, s scale, roof, floor int) float64 {
	return float64(floor) - float64(floor-roof)*value/s.top()
}

// path returns the path of a line.
func (d *drawing) path(p Panel, l Line, s scale, roof, floor int) string {
	var way strings.Builder
	for i, point := range l.Points {
		x, y := d.x(point.At), d.y(point.Value, s, roof, floor)
		switch {
		case i == 0:
			fmt.Fprintf(&way, "M%.1f %.1f", x, y)
		case p.Steps:
			fmt.Fprintf(&way, "H%.1fV%.1f", x, y)
		default:
			fmt.Fprintf(&way, "L%.1f %.1f", x, y)
		}
	}
	return way.String()
}

// largest returns the largest value of a panel.
func (p Panel) largest() (most float64) {
	for _, l := range p.Lines {
		for _, point := range l.Points {
			most = max(most, point.Value)
		}
	}
	return most
}
