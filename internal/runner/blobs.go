package runner

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"drover"
)

const (
	blobsFolder = "blobs"
	// maxBlobs bounds the size of all blobs together; a tenth of the disk is the other bound.
	maxBlobs = 10 << 30
	// leastBlob is what a smaller blob counts as: files must stay few enough to be listed at every tick.
	leastBlob = 64 << 10
	// freshBlob is how long a blob is kept despite the bound, so that a blob uploaded for a Start is still there when
	// the Start arrives.
	freshBlob = 10 * time.Minute
	// spareDisk is what an upload must leave free.
	spareDisk = 64 << 20
	// tempPrefix begins the names of blobs that are being uploaded.
	tempPrefix = ".put-"
)

// blobs stores inputs by content. A blob's modification time is when it was last needed.
type blobs struct {
	mu       sync.Mutex
	pinned   map[string]int      // how many starts need it now
	verified map[string]identify // blobs whose content was verified, as they were then
}

// identify shows whether a file has changed since it was verified: only the kernel can set a file's change time.
type identify struct {
	inode         uint64
	size          int64
	changed, nano int64
}

// newBlobs opens the folder's blobs and clears away uploads that an earlier daemon did not finish.
func newBlobs() (*blobs, error) {
	if err := os.MkdirAll(blobsFolder, 0o700); err != nil {
		return nil, err
	}
	stale, err := filepath.Glob(filepath.Join(blobsFolder, tempPrefix+"*"))
	for _, path := range stale {
		err = errors.Join(err, os.Remove(path))
	}
	return &blobs{pinned: make(map[string]int), verified: make(map[string]identify)}, err
}

func blobPath(hash string) string { return filepath.Join(blobsFolder, hash) }

// isHash reports whether s is a SHA-256 in lower-case hex, and so also safe as a file's name.
func isHash(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

// pin keeps the files' blobs from being evicted until unpin. If any are missing, it pins none and returns those
// missing.
func (b *blobs) pin(files []drover.File) (pins, missing []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := make(map[string]bool, len(files))
	for _, f := range files {
		if seen[f.Hash] {
			continue
		}
		seen[f.Hash] = true
		if _, err := os.Stat(blobPath(f.Hash)); err != nil {
			missing = append(missing, f.Hash)
		} else {
			pins = append(pins, f.Hash)
		}
	}
	if len(missing) > 0 {
		return nil, missing
	}
	for _, hash := range pins {
		b.pinned[hash]++
	}
	return pins, nil
}

func (b *blobs) unpin(pins []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, hash := range pins {
		if b.pinned[hash]--; b.pinned[hash] == 0 {
			delete(b.pinned, hash)
		}
	}
}

// open returns a pinned blob, ready to be read, after checking that its content still matches its name: jobs run as the
// same user and could have changed it.
func (b *blobs) open(hash string) (*os.File, error) {
	f, err := os.Open(blobPath(hash))
	if err != nil {
		return nil, err
	}
	if err := b.verify(f, hash); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (b *blobs) verify(f *os.File, hash string) error {
	if !b.unchanged(f, hash) {
		sum := sha256.New()
		if _, err := io.Copy(sum, f); err != nil {
			return err
		}
		if hex.EncodeToString(sum.Sum(nil)) != hash {
			return errors.Join(fmt.Errorf("blob %s was altered on the instance", hash), os.Remove(blobPath(hash)))
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	now := time.Now()
	if err := os.Chtimes(blobPath(hash), now, now); err != nil {
		return err
	}
	return b.remember(f, hash)
}

func (b *blobs) unchanged(f *os.File, hash string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, ok := b.verified[hash]
	now, err := identifyFile(f)
	return ok && err == nil && now == known
}

func (b *blobs) remember(f *os.File, hash string) error {
	id, err := identifyFile(f)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.verified[hash] = id
	return nil
}

func identifyFile(f *os.File) (identify, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return identify{}, err
	}
	return identify{st.Ino, st.Size, st.Ctim.Sec, st.Ctim.Nsec}, nil
}

// admit returns why a blob cannot be stored; nil if it can.
func (b *blobs) admit(hash string, size int64) error {
	if !isHash(hash) || size < 0 {
		return fmt.Errorf("not a valid blob: %.80q (%d bytes)", hash, size)
	}
	free, _, err := diskSpace()
	if err != nil {
		return err
	}
	if size > free-spareDisk {
		return fmt.Errorf("a blob of %d bytes does not fit into the %d bytes left on the disk", size, free)
	}
	return nil
}

// put stores the next size bytes of r if they have the given hash. Concurrent puts of one blob are safe. whole reports
// whether all bytes were read from r, even if they were wrong.
func (b *blobs) put(r io.Reader, hash string, size int64) (whole bool, err error) {
	temp, err := os.CreateTemp(blobsFolder, tempPrefix)
	if err != nil {
		return false, err
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(temp, sum), r, size); err != nil {
		return false, err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != hash {
		return true, fmt.Errorf("the bytes hash to %s, not to %s", got, hash)
	}
	if err := errors.Join(temp.Chmod(0o400), temp.Sync(), os.Rename(temp.Name(), blobPath(hash))); err != nil {
		return true, err
	}
	return true, b.remember(temp, hash)
}

// evict removes the least recently needed blobs while the total size is over the bound.
func (b *blobs) evict() error {
	_, total, err := diskSpace()
	if err != nil {
		return err
	}
	list, sum, err := listBlobs()
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, info := range list {
		if sum <= min(maxBlobs, total/10) {
			return nil
		}
		// A time far in the future is from a clock that was wrong.
		if b.pinned[info.Name()] > 0 || time.Since(info.ModTime()).Abs() < freshBlob {
			continue
		}
		if err := os.Remove(blobPath(info.Name())); err != nil {
			return err
		}
		delete(b.verified, info.Name())
		sum -= countedSize(info)
	}
	return nil
}

// listBlobs returns the blobs, the least recently needed first, and their total size.
func listBlobs() (list []fs.FileInfo, sum int64, err error) {
	entries, err := os.ReadDir(blobsFolder)
	if err != nil {
		return nil, 0, err
	}
	for _, entry := range entries {
		// A file that has vanished was an unfinished upload.
		if info, err := entry.Info(); err == nil && isHash(info.Name()) {
			list = append(list, info)
			sum += countedSize(info)
		}
	}
	slices.SortFunc(list, func(x, y fs.FileInfo) int {
		return cmp.Or(x.ModTime().Compare(y.ModTime()), cmp.Compare(x.Name(), y.Name()))
	})
	return list, sum, nil
}

func countedSize(blob fs.FileInfo) int64 { return max(blob.Size(), leastBlob) }

// diskSpace returns how much of the folder's disk is free for this user, and its size.
func diskSpace() (free, total int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(".", &st); err != nil {
		return 0, 0, err
	}
	return int64(st.Bavail) * st.Bsize, int64(st.Blocks) * st.Bsize, nil
}
