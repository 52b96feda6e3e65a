// Package chart draws what changed over time, as SVG. It is the only importer of its plotting library.
//
// The model: panels stand below one another over one axis of time; each shows the same subjects, one line a subject, in the same colors.
package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Panel is one chart.
type Panel struct {
	Title string
	Lines []Line
	Steps bool // a value holds until the next point; else they are joined
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

// Size of a chart, in points of which an inch has 72. It is drawn as wide as there is room for, and no wider.
const (
	width        = 900
	panelHeight  = 230
	legendHeight = 24
	margin       = 10
)

// palette is Okabe's and Ito's, whose colors people tell apart who see few.
var palette = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255}, color.RGBA{204, 121, 167, 255},
	color.RGBA{86, 180, 233, 255}, color.RGBA{230, 159, 0, 255}, color.RGBA{0, 0, 0, 255},
}

// SVG draws panels below one another, over times in UTC. Each has at least one line, and each line two points or more.
func SVG(w io.Writer, panels []Panel) error {
	if len(panels) == 0 {
		return errors.New("there is nothing to draw")
	}
	rows := make([][]*plot.Plot, len(panels))
	for i, p := range panels {
		drawn, err := p.plot()
		if err != nil {
			return err
		}
		rows[i] = []*plot.Plot{drawn}
	}
	rows[len(rows)-1][0].X.Label.Text = "UTC"
	height := vg.Length(panelHeight * len(panels))
	names := panels[0].Lines
	if len(names) > 1 {
		height += legendHeight
	}
	canvas := vgsvg.New(width, height)
	paper := draw.New(canvas)
	paper.SetColor(color.White)
	paper.Fill(paper.Rectangle.Path())
	if len(names) > 1 {
		drawLegend(paper, names)
		paper = draw.Crop(paper, 0, 0, 0, -legendHeight)
	}
	tiles := draw.Tiles{Rows: len(panels), Cols: 1, PadTop: margin, PadBottom: margin, PadLeft: margin, PadRight: 3 * margin, PadY: margin}
	for i, c := range plot.Align(rows, tiles, paper) {
		rows[i][0].Draw(c[0])
	}
	var drawn bytes.Buffer
	if _, err := canvas.WriteTo(&drawn); err != nil {
		return err
	}
	_, err := w.Write(fitting(drawn.Bytes(), panels))
	return err
}

// size is the part of a drawing that says how large it is.
var size = regexp.MustCompile(`<svg width="([^"]+)" height="[^"]+"`)

// fitting is a drawing that is no wider than there is room for, with a title for who hears it read.
func fitting(drawn []byte, panels []Panel) []byte {
	var titles []string
	for _, p := range panels {
		titles = append(titles, p.Title)
	}
	var title bytes.Buffer
	xml.EscapeText(&title, []byte(strings.Join(titles, ", ")))
	return size.ReplaceAll(drawn, fmt.Appendf(nil, `<svg role="img" aria-label="%s over time" style="width:100%%;max-width:${1};height:auto"`, bytes.ReplaceAll(title.Bytes(), []byte("$"), []byte("$$"))))
}

// drawLegend names the lines side by side, above all panels.
func drawLegend(paper draw.Canvas, lines []Line) {
	style := plot.New().Legend.TextStyle
	style.Font.Variant = "Sans"
	style.YAlign = text.YCenter
	const stroke, gap = 24, 6
	at := vg.Point{X: paper.Min.X + 5*margin, Y: paper.Max.Y - legendHeight/2 - margin/2}
	for i, l := range lines {
		paper.StrokeLine2(draw.LineStyle{Color: palette[i%len(palette)], Width: 3}, at.X, at.Y, at.X+stroke, at.Y)
		at.X += stroke + gap
		paper.FillText(style, at, l.Name)
		at.X += style.Width(l.Name) + 3*gap
	}
}

// plot lays a panel out. The first line lies above the others.
func (p Panel) plot() (*plot.Plot, error) {
	out := plot.New()
	out.Title.Text = p.Title
	out.Title.Padding = vg.Points(4)
	out.X.Tick.Marker = plot.TickerFunc(ticks)
	for _, style := range []*text.Style{&out.Title.TextStyle, &out.X.Label.TextStyle, &out.X.Tick.Label, &out.Y.Tick.Label} {
		style.Font.Variant = "Sans"
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{225}, color.Gray{225}
	out.Add(grid)
	for i, l := range slices.Backward(p.Lines) {
		line, err := plotter.NewLine(l.xys())
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = palette[i%len(palette)], vg.Points(1)
		if p.Steps {
			line.StepStyle = plotter.PostStep
		}
		out.Add(line)
	}
	out.Y.Min = 0
	if out.Y.Max <= 0 {
		out.Y.Max = 1
	}
	return out, nil
}

func (l Line) xys() plotter.XYs {
	xys := make(plotter.XYs, len(l.Points))
	for i, p := range l.Points {
		xys[i] = plotter.XY{X: float64(p.At.UnixMilli()) / 1000, Y: p.Value}
	}
	return xys
}

// strides are what may lie between two labels of the time axis, and how those are written.
var strides = []struct {
	every  time.Duration
	layout string
}{
	{time.Minute, "15:04"}, {5 * time.Minute, "15:04"}, {10 * time.Minute, "15:04"}, {30 * time.Minute, "15:04"}, {time.Hour, "15:04"}, {3 * time.Hour, "01-02 15:04"},
	{6 * time.Hour, "01-02 15:04"}, {12 * time.Hour, "01-02 15:04"}, {day, time.DateOnly}, {2 * day, time.DateOnly}, {7 * day, time.DateOnly}, {14 * day, time.DateOnly},
	{28 * day, time.DateOnly}, {91 * day, time.DateOnly}, {365 * day, time.DateOnly},
}

const (
	day        = 24 * time.Hour
	mostLabels = 9
)

// ticks labels an axis of seconds since 1970 at round times.
func ticks(from, to float64) (list []plot.Tick) {
	stride := strides[len(strides)-1]
	for _, s := range strides {
		if (to-from)/s.every.Seconds() <= mostLabels {
			stride = s
			break
		}
	}
	every := stride.every.Seconds()
	for at := math.Ceil(from/every) * every; at <= to && len(list) < 100; at += every {
		list = append(list, plot.Tick{Value: at, Label: time.Unix(int64(at), 0).UTC().Format(stride.layout)})
	}
	return list
}
