package main

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/andybalholm/brotli"
)

type weight struct{ raw, gzip, brotli int }

// budget is what a first visit may load, in bytes.
var budget = weight{gzip: 3_200_000, brotli: 2_500_000}

// report prints the weight of a first visit and fails when it is over allowed.
func report(out io.Writer, files []file, allowed weight) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "raw\tgzip -9\tbrotli -11\t  a first visit loads")
	var sum weight
	for _, f := range files {
		if !f.first {
			continue
		}
		w, err := weigh(f.data)
		if err != nil {
			return err
		}
		sum = weight{sum.raw + w.raw, sum.gzip + w.gzip, sum.brotli + w.brotli}
		fmt.Fprintf(table, "%d\t%d\t%d\t  %s\n", w.raw, w.gzip, w.brotli, f.path)
	}
	fmt.Fprintf(table, "%d\t%d\t%d\t  in all\n", sum.raw, sum.gzip, sum.brotli)
	fmt.Fprintf(table, "\t%d\t%d\t  allowed\n", allowed.gzip, allowed.brotli)
	if err := table.Flush(); err != nil {
		return err
	}
	if sum.gzip > allowed.gzip || sum.brotli > allowed.brotli {
		return fmt.Errorf("a first visit loads %d bytes gzip -9 and %d bytes brotli -11; at most %d and %d are allowed", sum.gzip, sum.brotli, allowed.gzip, allowed.brotli)
	}
	return nil
}

func weigh(data []byte) (weight, error) {
	packed, err := pack(data)
	if err != nil {
		return weight{}, err
	}
	var small bytes.Buffer
	w := brotli.NewWriterLevel(&small, brotli.BestCompression)
	if _, err := w.Write(data); err != nil {
		return weight{}, err
	}
	if err := w.Close(); err != nil {
		return weight{}, err
	}
	return weight{len(data), len(packed), small.Len()}, nil
}
