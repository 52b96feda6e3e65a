package local

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"drover"
	"drover/driver"
	"drover/driver/kit"
	"drover/internal/atomicfile"
	"drover/internal/folderlock"
	"drover/internal/processes"
)

// longestName is the longest name that fits into the name of a folder, and half of an id.
const longestName = 63

// demands are what this host requires of every create call.
var demands = kit.Demands{Longest: longestName}

// Create starts an instance's processes and returns without waiting for them. Its address is known and, unless a boot
// delay is configured, its port accepts connections. The name of an instance that died can be used again once its
// folder is gone.
func (c *cloud) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	return errs.Create(ctx, r, demands, c.create)
}

// check refuses invalid login and host keys, and returns the public half of the host key.
func check(r driver.CreateRequest) (ssh.PublicKey, error) {
	if _, _, _, _, err := ssh.ParseAuthorizedKey([]byte(r.PublicKey)); err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "read the public key: %v", err)
	}
	signer, err := ssh.ParsePrivateKey([]byte(r.HostKey.Reveal()))
	if err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "read the host key: %v", err)
	}
	return signer.PublicKey(), nil
}

// create runs under the fleet's lock, since it must not run twice at once for one name.
func (c *cloud) create(ctx context.Context, r driver.CreateRequest) (driver.Instance, error) {
	hostKey, err := check(r)
	if err != nil {
		return driver.Instance{}, err
	}
	program, err := c.ourProgram(ctx)
	if err != nil {
		return driver.Instance{}, err
	}
	fleet, err := c.lockFleet(ctx, c.o.Fleet)
	if err != nil {
		return driver.Instance{}, err
	}
	defer folderlock.Unlock(fleet)

	path := filepath.Join(c.fleetFolder(c.o.Fleet), r.Name)
	in, alive, err := living(c.o.Fleet, path)
	if alive {
		return in, err
	}
	if err == nil && remains(path) {
		return c.lookAtRemains(ctx, c.o.Fleet, path)
	}
	if err == nil {
		err = c.remove(ctx, path)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return driver.Instance{}, err
	}
	candidate, err := c.choose(r.Candidates)
	if err != nil {
		return driver.Instance{}, err
	}
	if err := c.build(ctx, path, program, r, candidate, hostKey); err != nil {
		return driver.Instance{}, errors.Join(err, c.remove(context.WithoutCancel(ctx), path))
	}
	return readInstance(c.o.Fleet, path)
}

// ourProgram returns the copy that instances run from. It is made once.
func (c *cloud) ourProgram(ctx context.Context) (string, error) {
	return c.program.Get(ctx, "", func() (string, error) { return processes.CopySelf(filepath.Join(c.o.Folder, ".bin")) })
}

// choose returns the first candidate that is in stock.
func (c *cloud) choose(candidates []driver.Candidate) (taken driver.Candidate, err error) {
	if limit := c.config.Faults.Quota; limit > 0 {
		folders, err := instanceFolders(c.fleetFolder(c.o.Fleet))
		if err != nil {
			return taken, err
		}
		if len(folders) >= limit {
			return taken, errQuota(limit)
		}
	}
	for _, taken = range candidates {
		if err = c.catalog.check(taken); err != nil {
			return taken, err
		}
		if !c.config.Faults.outOf(taken, time.Since(c.opened)) {
			return taken, nil
		}
		err = errCapacity(taken)
	}
	return taken, err
}

// check refuses a candidate that is not among the offerings.
func (all catalog) check(c driver.Candidate) error {
	for _, o := range all {
		if o.Type.ProviderType == c.ProviderType && o.Zone == c.Zone && o.Market == c.Market {
			return nil
		}
	}
	return drover.Errorf(drover.KindInvalid, "there is no type %q in zone %q, market %q", c.ProviderType, c.Zone, c.Market)
}

// build creates the instance's folder and starts its processes, which inherit the lock on it.
func (c *cloud) build(ctx context.Context, path, program string, r driver.CreateRequest, taken driver.Candidate, hostKey ssh.PublicKey) error {
	me := strconv.Itoa(os.Getuid()) // as in a container whose user has no name
	if named, err := user.Current(); err == nil {
		me = named.Username
	}
	if err := layOut(path); err != nil {
		return err
	}
	if err := atomicfile.WriteJSON(filepath.Join(path, tagsFile), r.Tags); err != nil {
		return err
	}
	key := base64.StdEncoding.EncodeToString(hostKey.Marshal())
	one := record{Candidate: taken, User: me, HostKey: key, Created: drover.TimeOf(time.Now())}
	return c.boot(ctx, path, program, c.launch(r, environment(path, me)), one)
}

// boot starts the processes of an instance whose folder exists, at a new address.
func (c *cloud) boot(ctx context.Context, path, program string, l launch, r record) error {
	held, err := folderlock.Lock(ctx, path)
	if err != nil {
		return err
	}
	defer held.Close()
	socket, address, err := reserve(l.BootDelay == 0)
	if err != nil {
		return err
	}
	defer socket.Close()
	r.Address, r.Boots = c.config.Faults.announced(address), drover.TimeOf(time.Now().Add(l.BootDelay))
	if err := atomicfile.WriteJSON(filepath.Join(path, recordFile), r); err != nil {
		return err
	}
	return c.start(path, program, l, held, socket)
}

func (c *cloud) launch(r driver.CreateRequest, environment []string) launch {
	l := launch{
		HostKey:     r.HostKey.Reveal(),
		PublicKey:   r.PublicKey,
		BootDelay:   c.config.Faults.BootDelay,
		NeverBoots:  c.config.Faults.neverBoots(r.Name),
		Fate:        c.config.Faults.fateOf(r.Name),
		Environment: environment,
	}
	for _, script := range kit.Scripts(r) {
		l.Init = append(l.Init, script.Reveal())
	}
	return l
}

// layOut creates the folder, with commands that end the instance instead of this host.
func layOut(path string) error {
	for _, sub := range []string{"", homeFolder, tempFolder, binFolder} {
		if err := os.Mkdir(filepath.Join(path, sub), 0o700); err != nil {
			return err
		}
	}
	for _, name := range []string{"poweroff", "shutdown", "halt"} {
		if err := os.WriteFile(filepath.Join(path, binFolder, name), []byte(powerOffScript), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// powerOffScript tells the outer process to end the instance, which ends this script too. The script continues only if
// the outer process hangs, or was killed together with the guest. Then another process may have the outer one's number,
// and the script itself must end what is left of the instance.
const powerOffScript = `#!/bin/sh
i=$` + marker + `
p=$(cat "$i/` + pidFile + `")
[ "/proc/$p/cwd" -ef "$i" ] && kill "$p" && sleep 2
for e in /proc/[0-9]*/environ; do
p=${e#/proc/} p=${p%/environ}
[ "$p" = $$ ] || ! grep -Fqxz "` + marker + `=$i" "$e" || kill -9 "$p"
done 2>/dev/null
`

// marker is an environment variable of every process of an instance: the instance's folder.
const marker = "DROVER_LOCAL_INSTANCE"

func marked(path string) string { return marker + "=" + path }

// environment is the environment of a login: little, as on an instance of any cloud. The image is this host, so its
// caches are shared.
func environment(path, login string) []string {
	env := []string{
		"HOME=" + filepath.Join(path, homeFolder),
		"TMPDIR=" + filepath.Join(path, tempFolder),
		"PATH=" + filepath.Join(path, binFolder) + ":" + cmp.Or(os.Getenv("PATH"), "/usr/local/bin:/usr/bin:/bin"),
		"USER=" + login,
		"LOGNAME=" + login,
		"SHELL=/bin/sh",
		marked(path),
		"DROVER_SWITCH=" + filepath.Join(path, "switch"),
		"DROVER_POWEROFF=" + filepath.Join(path, binFolder, "poweroff"),
		"DROVER_NOTICES=" + filepath.Join(path, noticesFile),
	}
	if cache, err := os.UserCacheDir(); err == nil {
		env = append(env, "XDG_CACHE_HOME="+cache)
	}
	// Without it, rootless podman uses TMPDIR, and with a path of that length needs 20 seconds to notice a container's end.
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		env = append(env, "XDG_RUNTIME_DIR="+dir)
	}
	return env
}

// reserve binds a port that the kernel chooses on the loopback interface. Until the socket listens, connections to it
// are refused, as with an instance that is still booting.
func reserve(listen bool) (*os.File, netip.AddrPort, error) {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, netip.AddrPort{}, fmt.Errorf("open a socket: %w", err)
	}
	socket := os.NewFile(uintptr(fd), "ssh")
	err = unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback.As4()})
	if err == nil && listen {
		err = unix.Listen(fd, backlog)
	}
	var bound unix.Sockaddr
	if err == nil {
		bound, err = unix.Getsockname(fd)
	}
	if err != nil {
		socket.Close()
		return nil, netip.AddrPort{}, fmt.Errorf("bind a port on the loopback address: %w", err)
	}
	return socket, netip.AddrPortFrom(loopback, uint16(bound.(*unix.SockaddrInet4).Port)), nil
}

// start runs the outer process in its own session. It inherits only the files that are passed to it.
func (c *cloud) start(path, program string, l launch, held, socket *os.File) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	in, err := nameless(path, text)
	if err != nil {
		return fmt.Errorf("pass the keys to the instance: %w", err)
	}
	defer in.Close()
	log, err := os.OpenFile(filepath.Join(path, logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	pid, err := processes.Spawn(program, []string{"drover", Command, path}, path, l.Environment, in, log, log, held, socket)
	if err != nil {
		return fmt.Errorf("start the instance's process: %w", err)
	}
	c.mu.Lock()
	c.children = append(c.children, pid)
	c.mu.Unlock()
	return writePID(path, pid)
}

// writePID records an instance's process. The instance does so too, since its controller may be killed right after
// starting it.
func writePID(path string, pid int) error {
	return atomicfile.Write(filepath.Join(path, pidFile), []byte(strconv.Itoa(pid)+"\n"))
}

// nameless returns a file that contains a text and can be read only by processes that inherit it. The text may contain
// secrets, so the file's name is removed before the text is written.
func nameless(folder string, text []byte) (*os.File, error) {
	f, err := os.CreateTemp(folder, "nameless-*")
	if err != nil {
		return nil, err
	}
	if err = os.Remove(f.Name()); err == nil {
		_, err = f.Write(text)
	}
	if _, failed := f.Seek(0, io.SeekStart); err != nil || failed != nil {
		return nil, errors.Join(err, failed, f.Close())
	}
	return f, nil
}
