package config

import (
	"io"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"drover"
)

// FilePath is the absolute path of a file on this host. In the file it may be relative to the file's own folder.
type FilePath string

func (p *FilePath) decodeWord(d *decoder, n *node) {
	if n.text == "" {
		d.add(n, "the path is empty", "leave the key out")
		return
	}
	*p = FilePath(resolve(d.dir, n.text))
}

func (FilePath) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: "."}
}

// FileText is the content of a user's file, which is read with the configuration.
type FileText struct {
	Path FilePath
	Text string
}

// maxFileText limits such a file: no cloud accepts more.
const maxFileText = 1 << 20

func (f *FileText) decodeWord(d *decoder, n *node) {
	before := d.count
	f.Path.decodeWord(d, n)
	if d.count > before {
		return
	}
	file, err := open(string(f.Path))
	if err != nil {
		d.addf(n, "%s: %v", f.Path, reason(err))
		return
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFileText+1))
	switch {
	case err != nil:
		d.addf(n, "%s: %v", f.Path, reason(err))
	case len(text) > maxFileText:
		d.addf(n, "%s is larger than 1 MiB", f.Path)
	case !utf8.Valid(text):
		d.addf(n, "%s is not UTF-8 text", f.Path)
	default:
		f.Text = string(text)
	}
}

func (FileText) schema() *jsonschema.Schema { return FilePath("").schema() }

// open opens a file for reading. It does not wait for a pipe's writer: that would block a controller that reloads.
func open(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) }

// Images are the images that instances boot, by architecture; under "" for any architecture.
type Images map[drover.Arch]string

func (i *Images) decode(d *decoder, n *node) {
	switch {
	case n.shape == scalar && n.text != "":
		*i = Images{"": n.text}
	case n.shape == scalar:
		d.add(n, "the image's name is empty", "leave the key out")
	default:
		var each struct {
			AMD64 string `yaml:"amd64"`
			ARM64 string `yaml:"arm64"`
		}
		d.value(n, reflect.ValueOf(&each).Elem(), field{})
		*i = Images{}
		for arch, image := range map[drover.Arch]string{"amd64": each.AMD64, "arm64": each.ARM64} {
			if image != "" {
				(*i)[arch] = image
			}
		}
	}
}

func (Images) schema() *jsonschema.Schema {
	image := &jsonschema.Schema{Type: "string", MinLength: new(1)}
	each := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"amd64": image, "arm64": image}, AdditionalProperties: never()}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{image, each}}
}

// HookTarget is the absolute path of a script, a URL, or a script in a cloud's attribute: attribute:CLOUD/NAME.
type HookTarget string

func (t *HookTarget) decodeWord(d *decoder, n *node) {
	if _, name, is := HookTarget(n.text).Attribute(); is {
		if *t = HookTarget(n.text); name == "" {
			d.add(n, quote(n.text)+" does not name an attribute", "write attribute:CLOUD/NAME")
		}
		return
	}
	if !HookTarget(n.text).isURL() {
		(*FilePath)(t).decodeWord(d, n)
		return
	}
	if u, err := url.Parse(n.text); err != nil || u.Hostname() == "" {
		d.add(n, quote(n.text)+" is not a URL", "write https://HOST/PATH, or the path of a script")
		return
	}
	*t = HookTarget(n.text)
}

func (HookTarget) schema() *jsonschema.Schema { return FilePath("").schema() }

// isURL reports whether the target is a URL, not a script.
func (t HookTarget) isURL() bool {
	return strings.HasPrefix(string(t), "http://") || strings.HasPrefix(string(t), "https://")
}

// Attribute returns the cloud and the attribute that have the script, if it is in an attribute.
func (t HookTarget) Attribute() (cloud, name string, is bool) {
	rest, is := strings.CutPrefix(string(t), "attribute:")
	cloud, name, _ = strings.Cut(rest, "/")
	return cloud, name, is
}

// Hooks are users' scripts or URLs. An empty one is not set.
type Hooks struct {
	Created   HookTarget `yaml:"created" doc:"a cloud accepted the request for an instance"`
	Ready     HookTarget `yaml:"ready" doc:"an instance is ready, and its address is known"`
	Stopped   HookTarget `yaml:"stopped" doc:"Drover stops an instance of a pool; when it is started again, ready runs once more"`
	Destroyed HookTarget `yaml:"destroyed" doc:"an instance was destroyed, and its cloud no longer lists it"`
	Vanished  HookTarget `yaml:"vanished" doc:"an instance is gone, and Drover did not destroy it"`
	Exhausted HookTarget `yaml:"exhausted" doc:"a zone has run out of capacity; once per zone"`
	Broken    HookTarget `yaml:"broken" doc:"an instance is broken and about to be destroyed"`
}

// Scripts returns the hooks that are set: paths, URLs and attributes.
func (h Hooks) Scripts() map[drover.Hook]string {
	all := map[drover.Hook]string{}
	for hook, path := range map[drover.Hook]HookTarget{
		drover.HookCreated: h.Created, drover.HookReady: h.Ready, drover.HookStopped: h.Stopped, drover.HookDestroyed: h.Destroyed, drover.HookVanished: h.Vanished,
		drover.HookExhausted: h.Exhausted, drover.HookBroken: h.Broken,
	} {
		if path != "" {
			all[hook] = string(path)
		}
	}
	return all
}

// checkScripts rejects scripts that could never run; root is the node with the hooks.
func (c *Config) checkScripts(f *faults, root *node, h Hooks) {
	scripts := h.Scripts()
	for _, hook := range drover.Hooks() {
		path, ok := scripts[hook]
		if !ok || HookTarget(path).isURL() {
			continue
		}
		n := root.find(string(hook))
		if cloud, _, is := HookTarget(path).Attribute(); is {
			if !slices.Contains(c.CloudNames(), cloud) {
				f.addUnknown(n, "there is no cloud "+quote(cloud), cloud, c.CloudNames())
			}
			continue
		}
		switch info, err := os.Stat(path); {
		case err != nil:
			f.addf(n, "%s: %v", path, reason(err))
		case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
			f.add(n, path+" is not an executable file", "chmod +x "+path)
		}
	}
}
