// Command mandelbrot renders tiles of a picture of the Mandelbrot set, and joins them.
//
//	mandelbrot tile INDEX       writes tile INDEX of the picture to tile.png
//	mandelbrot join FOLDER      joins the tiles FOLDER/INDEX/tile.png into mandelbrot.png
//
// It needs only this source file and the standard library, so an instance can compile it.
package main

import (
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"math/cmplx"
	"os"
	"path/filepath"
	"strconv"
)

// The picture: 8 × 6 square tiles.
const (
	columns, rows = 8, 6
	side          = 200 // tile size in pixels
	width, height = columns * side, rows * side
)

// The picture shows a spiral between the main cardioid and the largest disk of the set.
const (
	centre     = complex(-0.743643135, 0.131825963)
	breadth    = 0.000115 // width of the picture in the complex plane
	iterations = 6000
	samples    = 2 // per pixel, in each direction
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		os.Stderr.WriteString("mandelbrot: " + err.Error() + "\n")
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "tile":
		index, err := strconv.Atoi(args[1])
		if err != nil || index < 0 || index >= columns*rows {
			return errors.New("there is no tile " + args[1])
		}
		return save("tile.png", tile(index))
	case len(args) == 2 && args[0] == "join":
		picture, err := join(args[1])
		if err != nil {
			return err
		}
		return save("mandelbrot.png", picture)
	}
	return errors.New("usage: mandelbrot tile INDEX, or mandelbrot join FOLDER")
}

// tile renders one tile. Tiles are numbered row by row.
func tile(index int) image.Image {
	left, top := index%columns*side, index/columns*side
	m := image.NewRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			m.Set(x, y, pixel(left+x, top+y))
		}
	}
	return m
}

// pixel returns the mean color of several points in a pixel.
func pixel(x, y int) color.Color {
	var sum light
	for i := range samples * samples {
		dx, dy := (float64(i%samples)+0.5)/samples, (float64(i/samples)+0.5)/samples
		sum = sum.plus(point(float64(x)+dx, float64(y)+dy))
	}
	return sum.times(1.0 / (samples * samples)).color()
}

// point returns the light of one point of the picture. A point that escapes is coloured by the number of iterations
// and shaded as if the surroundings of the set were a landscape lit from the upper left.
func point(x, y float64) light {
	const scale = breadth / width
	c := centre + complex((x-width/2)*scale, (height/2-y)*scale)
	z, slope := complex(0, 0), complex(0, 0)
	for n := range iterations {
		slope = 2*z*slope + 1
		z = z*z + c
		if r := real(z)*real(z) + imag(z)*imag(z); r > 1e6 {
			smooth := float64(n) + 1 - math.Log2(math.Log(r)/2)
			return palette(smooth).times(shade(z / slope))
		}
	}
	return light{}
}

// shade returns the brightness of a surface that slopes in this direction.
func shade(fall complex128) float64 {
	const rise = 1.5
	sun := cmplx.Rect(1, 3*math.Pi/4)
	normal := fall / complex(cmplx.Abs(fall), 0)
	t := (real(normal)*real(sun) + imag(normal)*imag(sun) + rise) / (1 + rise)
	return 0.35 + 0.75*max(0, t)
}

// palette cycles from deep blue through white and gold to brown. The cycle slows down as n grows.
func palette(n float64) light {
	stops := [...]light{
		{0.00, 0.02, 0.12}, {0.02, 0.12, 0.42}, {0.12, 0.42, 0.80}, {0.75, 0.93, 1.00},
		{1.00, 0.86, 0.45}, {0.98, 0.55, 0.08}, {0.45, 0.12, 0.06}, {0.10, 0.02, 0.10},
	}
	at := math.Mod(1.9*math.Log(n)*math.Log(n), float64(len(stops)))
	i := int(at)
	t := at - float64(i)
	t = t * t * (3 - 2*t)
	return stops[i].times(1 - t).plus(stops[(i+1)%len(stops)].times(t))
}

// light is red, green and blue, from 0 to 1.
type light [3]float64

func (l light) plus(m light) light    { return light{l[0] + m[0], l[1] + m[1], l[2] + m[2]} }
func (l light) times(k float64) light { return light{l[0] * k, l[1] * k, l[2] * k} }

func (l light) color() color.Color {
	level := func(v float64) uint8 { return uint8(255*min(1, max(0, v)) + 0.5) }
	return color.RGBA{level(l[0]), level(l[1]), level(l[2]), 255}
}

// join combines the tiles into one picture.
func join(folder string) (image.Image, error) {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range columns * rows {
		part, err := load(filepath.Join(folder, strconv.Itoa(i), "tile.png"))
		if err != nil {
			return nil, err
		}
		corner := image.Pt(i%columns*side, i/columns*side)
		draw.Draw(m, image.Rectangle{corner, corner.Add(image.Pt(side, side))}, part, part.Bounds().Min, draw.Src)
	}
	return m, nil
}

func load(file string) (image.Image, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return png.Decode(f)
}

func save(file string, m image.Image) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := png.Encode(f, m); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
