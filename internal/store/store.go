package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite" // also the driver of that name
	sqlitelib "modernc.org/sqlite/lib"

	"drover"
	"drover/internal/engine"
)

//go:embed migrations/*.sql
var migrations embed.FS

// readers is how many lists may be read at once.
const readers = 4

// Store is an open file of records. Its methods are safe for concurrent use.
type Store struct {
	path      string
	file      fs.FileInfo // of the file when it was opened
	write     *sql.DB     // one connection
	read      *sql.DB
	prepared  map[string]*sql.Stmt // on write, by their text
	spec      *sql.Stmt            // on read
	epoch     atomic.Int64         // that Begin gave to this Store; 0 before
	proof     *proof
	successes *successes
	puts      puts
}

// Open opens the records in the file at path. It creates what is missing: the folder, the file, its tables.
func Open(ctx context.Context, path string) (*Store, error) {
	s, err := open(ctx, path)
	if err != nil {
		if answer := new(*drover.Error); errors.As(err, answer) {
			return nil, fmt.Errorf("opening the state %s: %w", path, err)
		}
		return nil, explained("opening the state "+path, err)
	}
	return s, nil
}

func open(ctx context.Context, path string) (*Store, error) {
	path, err := Resolve(path)
	if err != nil {
		return nil, err
	}
	file, err := touch(path)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, file: file, prepared: map[string]*sql.Stmt{}, proof: proofOf(path), successes: successesOf(path), puts: puts{turn: make(chan struct{}, 1)}}
	if s.write, err = connect(path, 1, writerOptions); err != nil {
		return nil, err
	}
	if s.read, err = connect(path, readers, readerOptions); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err = migrate(ctx, s.write); err == nil {
		err = s.prepare(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// touch creates the file if it is missing, because SQLite would let others read it. SQLite's files beside it get its
// permissions.
func touch(path string) (fs.FileInfo, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	return info, errors.Join(err, f.Close())
}

// The writer begins every transaction as a writer: SQLite could refuse the first change of one that began as a reader.
var (
	writerOptions = url.Values{
		"_txlock": {"immediate"},
		"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"},
	}
	readerOptions = url.Values{
		"mode":    {"ro"},
		"_pragma": {"busy_timeout(10000)", "query_only(1)"},
	}
)

func connect(path string, most int, options url.Values) (*sql.DB, error) {
	name := url.URL{Scheme: "file", Path: path, RawQuery: options.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db, nil
}

// migrate upgrades the tables to this program's version. It refuses newer ones, and those of a State that the engine does
// not read.
func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files,
		goose.WithLogger(goose.NopLogger()), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	current, known, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > known {
		return drover.Errorf(drover.KindConflict, "its schema has version %d, which this program does not support", current).
			WithHint("a newer version of Drover has used this state; use that version")
	}
	if current > 0 {
		err = checkVersion(ctx, db)
	}
	if err != nil || current == known {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// checkVersion refuses a State that the engine does not read.
func checkVersion(ctx context.Context, db *sql.DB) error {
	version := 0
	err := db.QueryRowContext(ctx, `SELECT version FROM fleet WHERE name <> ''`).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil && version != engine.StateVersion {
		return drover.Errorf(drover.KindConflict, "it has version %d, but this program reads version %d", version, engine.StateVersion).
			WithHint("use the version of Drover that wrote it")
	}
	return err
}

// prepare compiles the most frequent queries once.
func (s *Store) prepare(ctx context.Context) (err error) {
	if s.spec, err = s.read.PrepareContext(ctx, specQuery); err != nil {
		return err
	}
	for _, query := range writeQueries {
		stmt, err := s.write.PrepareContext(ctx, query)
		if err != nil {
			return err
		}
		s.prepared[query] = stmt
	}
	return nil
}

// Close closes the file. No method may be called afterwards.
func (s *Store) Close() error {
	s.proof.close()
	s.successes.close()
	var errs []error
	for _, stmt := range s.prepared {
		errs = append(errs, stmt.Close())
	}
	if s.spec != nil {
		errs = append(errs, s.spec.Close())
	}
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	return errors.Join(append(errs, s.write.Close())...)
}

// change runs do in a transaction, and refuses to once another controller has begun or the file has been replaced.
func (s *Store) change(ctx context.Context, what string, do func(*sql.Tx) error) error {
	return s.changeTo(ctx, what, mark{}, do)
}

// changeTo is change for a transaction that assigns numbers, up to those of a mark.
func (s *Store) changeTo(ctx context.Context, what string, m mark, do func(*sql.Tx) error) error {
	err := s.transact(ctx, what, func(tx *sql.Tx) error {
		if err := s.fence(ctx, tx); err != nil {
			return err
		}
		if err := do(tx); err != nil {
			return err
		}
		return tx.StmtContext(ctx, s.prepared[countChange]).QueryRowContext(ctx).Scan(&m.Changes, &m.Job, &m.Attempt)
	})
	if err == nil {
		s.proof.advance(m)
	}
	return err
}

const (
	epochQuery  = `SELECT epoch FROM fleet`
	countChange = `UPDATE fleet SET changes = changes + 1 RETURNING changes, last_job, last_attempt`
)

// fence refuses a controller after another has begun, or when its file has been replaced. A caller that never began is
// not a controller and may write.
func (s *Store) fence(ctx context.Context, tx *sql.Tx) error {
	own := s.epoch.Load()
	if own == 0 {
		return nil
	}
	var epoch int64
	if err := tx.StmtContext(ctx, s.prepared[epochQuery]).QueryRowContext(ctx).Scan(&epoch); err != nil {
		return err
	}
	if epoch != own {
		return drover.Errorf(drover.KindConflict, "another controller has taken over the state: its epoch is %d", epoch).
			WithHint("this controller (epoch %d) can no longer write and must exit", own)
	}
	return s.stillThere()
}

// stillThere refuses to write to a file that has been removed or replaced: nobody could read it later. If it cannot be
// looked at for another reason, writing shows whether it works.
func (s *Store) stillThere() error {
	now, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(s.file, now) {
		return drover.Errorf(drover.KindConflict, "the records %s were removed or replaced while Drover was running", s.path).
			WithHint("put them back or restore a backup, then start Drover again")
	}
	return nil
}

// transact runs do in a transaction.
func (s *Store) transact(ctx context.Context, what string, do func(*sql.Tx) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.doing(ctx, what, err)
	}
	defer tx.Rollback() // changes nothing once committed
	if err := do(tx); err != nil {
		return s.doing(ctx, what, err)
	}
	if err := tx.Commit(); err != nil {
		return s.doing(ctx, what, err)
	}
	return nil
}

// look reads from one snapshot.
func (s *Store) look(ctx context.Context, what string, do func(*sql.Tx) error) error {
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return s.doing(ctx, what, err)
	}
	defer tx.Rollback() // there is nothing to undo
	if err := do(tx); err != nil {
		return s.doing(ctx, what, err)
	}
	return nil
}

// ErrFull is in the chain of an error when the disk has no room for a change. Nothing of the change was made, and it
// may be tried again.
var ErrFull = drover.Errorf(drover.KindTransient, "the disk with the controller's records is full").
	WithHint("free up space on that disk; the controller then resumes automatically")

// doing adds to an error what was being done. An error meant for the caller stays as it is.
func (s *Store) doing(ctx context.Context, what string, err error) error {
	if _, answer := err.(*drover.Error); answer {
		return err
	}
	if sqliteCode(err) == sqlitelib.SQLITE_INTERRUPT && ctx.Err() != nil {
		err = ctx.Err()
	}
	if isFull(err, s.path) {
		return fmt.Errorf("%s: %w: %w", what, ErrFull, err)
	}
	if sqliteCode(err) != 0 {
		err = fmt.Errorf("%s: %w", s.path, err)
	}
	return explained(what, err)
}

// explained adds what was being done, and a hint if SQLite cannot read the records or another program has locked them.
func explained(what string, err error) error {
	switch sqliteCode(err) {
	case sqlitelib.SQLITE_CORRUPT, sqlitelib.SQLITE_NOTADB:
		return drover.Errorf(drover.KindInternal, "%s: the records are damaged: %v", what, err).WithHint("restore a backup, then run drover gc to list unknown instances")
	case sqlitelib.SQLITE_BUSY:
		return drover.Errorf(drover.KindTransient, "%s: another program has locked the records: %v", what, err).WithHint("end that program, which may be a database shell; this change was not made")
	}
	return fmt.Errorf("%s: %w", what, err)
}

// isFull reports whether SQLite failed because the disk that holds a file is full. It reports some of those failures as
// I/O errors, so the disk is checked then.
func isFull(err error, file string) bool {
	switch sqliteCode(err) {
	case sqlitelib.SQLITE_FULL:
		return true
	case sqlitelib.SQLITE_IOERR, sqlitelib.SQLITE_CANTOPEN:
		var disk syscall.Statfs_t
		return syscall.Statfs(filepath.Dir(file), &disk) == nil && disk.Bavail == 0
	}
	return false
}

// sqliteCode returns SQLite's primary error code, 0 if the error is not SQLite's.
func sqliteCode(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}
