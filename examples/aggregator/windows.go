package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// printWindows prints the windows of a small table, by key.
func printWindows(ctx context.Context, client *dynamodb.Client, table string, out io.Writer) error {
	found, err := client.Scan(ctx, &dynamodb.ScanInput{TableName: &table})
	if err != nil {
		return err
	}
	text := func(v types.AttributeValue) string {
		s, _ := v.(*types.AttributeValueMemberS)
		if s == nil {
			return ""
		}
		return s.Value
	}
	var lines []string
	for _, item := range found.Items {
		_, window, ok := strings.Cut(text(item["SK"]), "#USAGE#")
		if !ok {
			continue
		}
		var sums []string
		for name, v := range item {
			limit, isLimit := strings.CutPrefix(name, "u_")
			if n, ok := v.(*types.AttributeValueMemberN); ok && (isLimit || name == "writes") {
				sums = append(sums, limit+" "+n.Value)
			}
		}
		slices.Sort(sums)
		lines = append(lines, fmt.Sprintf("%s %s: %s", text(item["entity_id"]), window, strings.Join(sums, ", ")))
	}
	slices.Sort(lines)
	for _, line := range lines {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}
