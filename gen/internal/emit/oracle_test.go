package emit_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/generated"
)

// item is GPT4Bucket's item as attributevalue knows structs.
type item struct {
	PK, SK, GSI2PK, GSI2SK string
	Entity                 string `dynamodbav:"entity_id"`
	Resource               string `dynamodbav:"resource"`
	Refilled               int64  `dynamodbav:"rf"`
	Version                int64  `dynamodbav:"cv"`
	Op                     string `dynamodbav:"op"`
	TTL                    int64  `dynamodbav:"ttl"`
	RPMTokens              int64  `dynamodbav:"b_rpm_tk"`
	RPMCapacity            int64  `dynamodbav:"b_rpm_cp"`
	RPMBurst               int64  `dynamodbav:"b_rpm_bx"`
	RPMRefill              int64  `dynamodbav:"b_rpm_ra"`
	RPMPeriod              int64  `dynamodbav:"b_rpm_rp"`
	RPMConsumed            int64  `dynamodbav:"b_rpm_tc"`
	TPMTokens              int64  `dynamodbav:"b_tpm_tk"`
	TPMCapacity            int64  `dynamodbav:"b_tpm_cp"`
	TPMBurst               int64  `dynamodbav:"b_tpm_bx"`
	TPMRefill              int64  `dynamodbav:"b_tpm_ra"`
	TPMPeriod              int64  `dynamodbav:"b_tpm_rp"`
	TPMConsumed            int64  `dynamodbav:"b_tpm_tc"`
}

// TestMarshalOracle holds MarshalItem against attributevalue, and UnmarshalItem against MarshalItem.
func TestMarshalOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		any64, positive, stored := rapid.Int64(), rapid.Int64Min(1), rapid.Int64Range(-9e18, 9e18)
		b := generated.GPT4Bucket{
			Entity: "user-" + rapid.String().Draw(t, "id"), Op: rapid.String().Draw(t, "op"),
			Refilled: any64.Draw(t, "rf"), Version: any64.Draw(t, "cv"), TTL: any64.Draw(t, "ttl"),
		}
		b.RPM.Tokens, b.RPM.Consumed = stored.Draw(t, "tk"), stored.Draw(t, "tc")
		b.RPM.Capacity, b.RPM.Burst = positive.Draw(t, "cp"), positive.Draw(t, "bx")
		b.RPM.Refill, b.RPM.Period = positive.Draw(t, "ra"), positive.Draw(t, "rp")
		b.TPM = b.RPM
		b.TPM.Tokens = stored.Draw(t, "tpm tk")

		want, err := attributevalue.MarshalMap(item{
			PK: "ENTITY#" + b.Entity, SK: "#BUCKET#gpt-4", GSI2PK: "RESOURCE#gpt-4", GSI2SK: "BUCKET#" + b.Entity,
			Entity: b.Entity, Resource: generated.GPT4, Refilled: b.Refilled, Version: b.Version, Op: b.Op, TTL: b.TTL,
			RPMTokens: b.RPM.Tokens, RPMCapacity: b.RPM.Capacity, RPMBurst: b.RPM.Burst,
			RPMRefill: b.RPM.Refill, RPMPeriod: b.RPM.Period, RPMConsumed: b.RPM.Consumed,
			TPMTokens: b.TPM.Tokens, TPMCapacity: b.TPM.Capacity, TPMBurst: b.TPM.Burst,
			TPMRefill: b.TPM.Refill, TPMPeriod: b.TPM.Period, TPMConsumed: b.TPM.Consumed,
		})
		if err != nil {
			t.Fatal(err)
		}
		got := b.MarshalItem()
		if len(got) != len(want) {
			t.Fatalf("%d attributes, want %d", len(got), len(want))
		}
		for attr, v := range want {
			var a, b any
			if attributevalue.Unmarshal(got[attr], &a) != nil || attributevalue.Unmarshal(v, &b) != nil ||
				!cmp.Equal(a, b) {
				t.Fatalf("%s is %#v, want %#v", attr, got[attr], v)
			}
		}
		var back generated.GPT4Bucket
		if err := back.UnmarshalItem(want); err != nil || back != b {
			t.Fatalf("%+v read back as %+v: %v", b, back, err)
		}
	})
}
