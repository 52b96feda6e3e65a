package config

import (
	"os"

	"github.com/google/jsonschema-go/jsonschema"

	"drover"
)

// FilePath is the absolute path of a file on this host. In the file it may be relative, to the file's own folder.
type FilePath string

func (p *FilePath) decode(d *decoder, n *node) {
	switch {
	case !d.want(n, scalar):
	case n.text == "":
		d.add(n, "an empty path names no file", "leave the key out")
	default:
		*p = FilePath(resolve(d.dir, n.text))
	}
}

func (FilePath) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: "."}
}

// Hooks are people's scripts. An empty one is none.
type Hooks struct {
	Created   FilePath `yaml:"created" doc:"run when a cloud has accepted an instance"`
	Destroyed FilePath `yaml:"destroyed" doc:"run when an instance was destroyed and its cloud lists it no longer"`
	Vanished  FilePath `yaml:"vanished" doc:"run when an instance is gone that Drover did not destroy"`
	Exhausted FilePath `yaml:"exhausted" doc:"run, once, when a cloud has no more of something"`
	Broken    FilePath `yaml:"broken" doc:"run when an instance is held to be broken, before it is destroyed"`
}

// Scripts are the hooks there are.
func (h Hooks) Scripts() map[drover.Hook]string {
	all := map[drover.Hook]string{}
	for hook, path := range map[drover.Hook]FilePath{
		drover.HookCreated: h.Created, drover.HookDestroyed: h.Destroyed, drover.HookVanished: h.Vanished,
		drover.HookExhausted: h.Exhausted, drover.HookBroken: h.Broken,
	} {
		if path != "" {
			all[hook] = string(path)
		}
	}
	return all
}

// checkHooks refuses scripts that could never run.
func (c *Config) checkHooks(f *faults) {
	scripts := c.Hooks.Scripts()
	for _, hook := range drover.Hooks() {
		path, ok := scripts[hook]
		if !ok {
			continue
		}
		n := c.root.find("hooks", string(hook))
		switch info, err := os.Stat(path); {
		case err != nil:
			f.addf(n, "%s: %v", path, reason(err))
		case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
			f.add(n, path+" is not a program", "chmod +x "+path)
		}
	}
}
