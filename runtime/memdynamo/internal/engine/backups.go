package engine

import (
	"context"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// describeContinuousBackups says what is true of a table of which nobody asked more: that it could be
// restored to no point in time.
func describeContinuousBackups(_ context.Context, db *DB, input []byte) ([]byte, error) {
	r, err := decode[namedTable](input)
	if err != nil {
		return nil, err
	}
	if err := checkNamed(r.TableName); err != nil {
		return nil, err
	}
	db.enter()
	defer db.mu.Unlock()
	if _, err := db.lookup(*r.TableName); err != nil {
		return nil, exception.New(exception.TableNotFound, "Table not found: %s", tableName(*r.TableName))
	}
	var output struct {
		ContinuousBackupsDescription struct {
			ContinuousBackupsStatus        string
			PointInTimeRecoveryDescription struct{ PointInTimeRecoveryStatus string }
		}
	}
	d := &output.ContinuousBackupsDescription
	d.ContinuousBackupsStatus, d.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus = "ENABLED", "DISABLED"
	return reply(output)
}
