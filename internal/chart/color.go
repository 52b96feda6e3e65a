package chart

import (
	"fmt"
	"strings"
)

// color is a color on light and on dark pages. Light colors are attributes, for programs that ignore style sheets.
type color struct{ light, dark string }

var (
	paper = color{"#ffffff", "#15181d"}
	ink   = color{"#222222", "#e6e6e6"}
	grid  = color{"#e1e1e1", "#343a43"}
)

// palette is Okabe and Ito's, which color-blind people can distinguish. Its paler colors are darkened on light pages,
// and all are lightened on dark pages.
var palette = []color{
	{"#0072b2", "#4aa8e0"}, {"#d55e00", "#f08a3c"}, {"#00896a", "#1fc18f"}, {"#b8508c", "#e39ac4"}, {"#2b83b5", "#9ad3f5"}, {"#a87000", "#f2b632"}, {"#000000", "#ffffff"},
}

// stylesheet sets the colors of dark pages.
func stylesheet() string {
	var all strings.Builder
	fmt.Fprintf(&all, "<style>@media (prefers-color-scheme: dark) { .paper { fill: %s } .ink { fill: %s } .grid { stroke: %s }", paper.dark, ink.dark, grid.dark)
	for i, c := range palette {
		fmt.Fprintf(&all, " .line%d { stroke: %s }", i, c.dark)
	}
	return all.String() + " }</style>\n"
}
