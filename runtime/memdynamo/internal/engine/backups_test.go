package engine_test

import (
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// TestContinuousBackups describes the backups that every table has: none to any point in time.
func TestContinuousBackups(t *testing.T) {
	t.Parallel()
	r := newTables(t)
	r.gives("DescribeContinuousBackups", `{"TableName":"plain"}`, `{"ContinuousBackupsDescription":{
		"ContinuousBackupsStatus":"ENABLED",
		"PointInTimeRecoveryDescription":{"PointInTimeRecoveryStatus":"DISABLED"}}}`)
	r.fails("DescribeContinuousBackups", `{"TableName":"none"}`, exception.TableNotFound,
		"Table not found: none")
}
