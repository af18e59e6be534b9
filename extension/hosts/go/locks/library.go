package locks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/mattn/go-sqlite3"
)

var (
	writeOnce sync.Once
	written   string
	writeErr  error
)

// LoadablePath writes the library that this package carries to the user's cache folder, unless it is there already, and
// gives its path: for whatever loads extensions itself.
func LoadablePath() (string, error) {
	writeOnce.Do(func() { written, writeErr = writeLibrary() })
	return written, writeErr
}

func writeLibrary() (string, error) {
	sum := sha256.Sum256(library)
	folder, err := os.UserCacheDir()
	if err == nil {
		folder = filepath.Join(folder, "sqlite-fence", hex.EncodeToString(sum[:8]))
		err = os.MkdirAll(folder, 0o700)
	}
	if err != nil {
		// A user without a home.
		if folder, err = os.MkdirTemp("", "sqlite-fence-"); err != nil {
			return "", fmt.Errorf("fence: no folder for the library: %w", err)
		}
	}
	path := filepath.Join(folder, libraryName)
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, library) {
		return path, nil
	}
	// Moved into place: another process may be reading it.
	file, err := os.CreateTemp(folder, libraryName)
	if err != nil {
		return "", fmt.Errorf("fence: the library cannot be written: %w", err)
	}
	_, err = file.Write(library)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		return "", fmt.Errorf("fence: the library cannot be written: %w", err)
	}
	return path, nil
}

// Connector gives connections to the database of this name, each with the SQL functions loaded:
//
//	db := sql.OpenDB(locks.Connector("file:app.db?_busy_timeout=5000"))
func Connector(dataSourceName string) driver.Connector { return &connector{name: dataSourceName} }

type connector struct {
	name string
	// What is done with every new connection.
	hook func(*sqlite3.SQLiteConn) error
}

func (c *connector) Connect(context.Context) (driver.Conn, error) {
	path, err := LoadablePath()
	if err != nil {
		return nil, err
	}
	loading := sqlite3.SQLiteDriver{Extensions: []string{path}, ConnectHook: c.hook}
	return loading.Open(c.name)
}

func (c *connector) Driver() driver.Driver { return &sqlite3.SQLiteDriver{} }
